// Calls every method of the published OpenPAI client (package on NODE_PATH) against the server named in the environment,
// checks what its users rely on, and prints the names of the calls as one JSON list.

'use strict';

const assert = require('assert');
const { PAIV2: { OpenPAIClient } } = require('@microsoft/openpai-js-sdk');

const uri = process.env.PEER_URI;
const admin = process.env.PEER_USER;
const token = process.env.PEER_TOKEN;
const done = [];

function connect(fields) {
    return new OpenPAIClient({ rest_server_uri: `${uri}/rest-server`, https: false, ...fields });
}

function watched(client) {
    const groups = {};
    for (const [group, inner] of Object.entries(client)) {
        groups[group] = new Proxy(inner, {
            get(target, name) {
                const found = target[name];
                if (typeof found !== 'function') return found;
                return (...parameters) => {
                    done.push(`${group}.${String(name)}`);
                    return found.apply(target, parameters);
                };
            },
        });
    }
    return groups;
}

async function refused(call, status, code) {
    const error = await call.then(() => null, (reason) => reason);
    assert(error, `expected ${status} ${code}`);
    assert.strictEqual(error.status, status);
    if (code) assert.strictEqual(error.data.code, code);
    return error.data.message;
}

async function people(client) {
    await client.user.createUser({ username: 'peer', password: 'peer-secret' });
    await refused(client.user.createUser({ username: 'peer', password: 'peer-secret' }), 409, 'ConflictUserError');
    assert((await client.user.getAllUser()).some((user) => user.username === 'peer'));
    await client.user.updateUser({ username: 'peer', email: 'peer@example.org' });
    assert.strictEqual((await client.user.getUser('peer')).email, 'peer@example.org');
    await refused(client.user.getUser('nobody'), 400, 'NoUserError');

    await client.group.createGroup({ groupname: 'peers' });
    await client.group.updateGroup({ data: { groupname: 'peers', description: 'of a kind' }, patch: true });
    assert.strictEqual((await client.group.getGroup('peers')).description, 'of a kind');
    assert((await client.group.getAllGroup()).length >= 3);
    await client.user.updateUserGroup('peer', 'peers');
    assert.deepStrictEqual(await client.group.getGroupMembers('peers'), [{ username: 'peer', clusterAdmin: false }]);
    await client.user.deleteUserGroup('peer', 'peers');
    await client.user.updateUserGrouplist('peer', ['default', 'peers']);
    await client.group.deleteGroup('peers');
    assert.deepStrictEqual((await client.user.getUser('peer')).grouplist, ['default']);
}

async function sessions(client) {
    const login = await client.authn.basicLogin('peer', 'peer-secret');
    assert.strictEqual(login.user, 'peer');
    assert.strictEqual(login.admin, false);
    assert.strictEqual(
        await refused(client.authn.basicLogin('nobody', 'password'), 400, 'NoUserError'), 'User nobody is not found.');
    assert.strictEqual(
        await refused(client.authn.basicLogin('peer', 'password'), 400, 'IncorrectPasswordError'), 'Password is incorrect.');

    // Without a token the client logs in by itself.
    const peer = watched(connect({ username: 'peer', password: 'peer-secret' }));
    await peer.user.updateUserSelf({
        username: 'peer', email: 'p@example.org', oldPassword: 'peer-secret', newPassword: 'peer-secret',
    }, false);
    const application = await peer.token.createApplicationToken();
    assert((await peer.token.getTokens()).tokens.includes(application.token));
    await peer.token.deleteToken(application.token);
    assert(!(await peer.token.getTokens()).tokens.includes(application.token));
    assert.strictEqual(
        await refused(peer.kubernetes.getK8sNodes(), 403, 'ForbiddenUserError'),
        'Non-admin is not allow to do this operation.');
    assert.strictEqual((await peer.authn.basicLogout()).message, 'Logout successfully');
    assert.strictEqual(await refused(peer.token.getTokens(), 401, 'UnauthorizedUserError'), 'Your token is invalid.');
}

async function cluster(client) {
    const info = await client.api.getClusterInfo();
    assert.strictEqual(info.authnMethod, 'basic');
    assert.strictEqual(info.launcherType, 'k8s');
    assert('default' in await client.virtualCluster.listVirtualClusters());
    assert.strictEqual(typeof (await client.virtualCluster.getVirtualCluster('default')).maxCapacity, 'number');
    assert.deepStrictEqual(await client.virtualCluster.getVirtualClusterSkuTypes('default'), {});
    assert(Array.isArray((await client.storage.getStorages()).storages));
    await refused(client.storage.getStorage('nowhere'), 404, 'NoStorageError');
    assert((await client.kubernetes.getK8sNodes()).items);
    assert((await client.kubernetes.getK8sPods()).items);
    await refused(client.authn.oidcLogin(), 404);
    await refused(client.authn.oidcLogout(), 404);
}

function jobNamed(name, command) {
    return {
        protocolVersion: 2,
        name,
        type: 'job',
        prerequisites: [{ protocolVersion: 2, name: 'image', type: 'dockerimage', uri: 'python:3' }],
        taskRoles: {
            worker: {
                instances: 1,
                dockerImage: 'image',
                resourcePerInstance: { cpu: 1, memoryMB: 64, gpu: 0 },
                commands: [command],
            },
        },
        defaults: { virtualCluster: 'default' },
    };
}

async function ended(client, name) {
    for (;;) {
        const found = await client.job.getJob(admin, name);
        if (['SUCCEEDED', 'FAILED', 'STOPPED'].includes(found.jobStatus.state)) return found;
        await new Promise((resolve) => setTimeout(resolve, 100));
    }
}

async function jobs(client) {
    await client.job.createJob(jobNamed('quick', 'echo hello from a peer'));
    await refused(client.job.createJob(jobNamed('quick', 'true')), 409, 'ConflictJobError');
    assert.strictEqual((await client.job.getJob(admin, 'quick', 0)).name, 'quick');
    await refused(client.job.getJob(admin, 'missing'), 404, 'NoJobError');
    assert.strictEqual((await client.job.getJobConfig(admin, 'quick')).taskRoles.worker.commands[0], 'echo hello from a peer');

    await client.job.addTag(admin, 'quick', 'tagged');
    const listed = await client.job.listJobs({ username: admin, tagsContain: 'tagged', withTotalCount: true });
    assert.strictEqual(listed.totalCount, 1);
    assert.strictEqual(listed.data[0].name, 'quick');
    await client.job.deleteTag(admin, 'quick', 'tagged');
    await refused(client.job.deleteTag(admin, 'quick', 'tagged'), 404, 'NoTagError');

    const finished = await ended(client, 'quick');
    assert.strictEqual(finished.jobStatus.state, 'SUCCEEDED');
    assert.strictEqual(finished.taskRoles.worker.taskStatuses[0].containerExitCode, 0);
    assert((await client.job.listEvents(admin, 'quick')).data);
    assert.strictEqual((await client.job.getTask(admin, 'quick', 0, 'worker', 0)).taskRoleName, 'worker');
    for (const tail of [false, true]) {
        const logs = await client.job.getTaskLogs(admin, 'quick', 0, 'worker', 0, 0, tail);
        assert(logs.locations.some((location) => location.name === 'stdout'));
    }
    assert.strictEqual(await client.jobHistory.getJobAttemptsHealthz(admin, 'quick'), 'ok');
    assert.strictEqual((await client.jobHistory.getJobAttempts(admin, 'quick'))[0].isLatest, true);
    assert.strictEqual((await client.jobHistory.getJobAttempt(admin, 'quick', 0)).attemptIndex, 0);

    const running = await client.job.createRunningJob(jobNamed('long', 'sleep 600'));
    assert.notStrictEqual(running.jobStatus.state, 'FAILED');
    await client.job.updateJobExecutionType(admin, 'long', 'STOP');
    assert.strictEqual((await ended(client, 'long')).jobStatus.state, 'STOPPED');
}

(async () => {
    const client = watched(connect({ username: admin, token }));
    await cluster(client);
    await people(client);
    await sessions(client);
    await jobs(client);
    await client.user.deleteUser('peer');
    process.stdout.write(JSON.stringify([...new Set(done)].sort()));
})().catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
