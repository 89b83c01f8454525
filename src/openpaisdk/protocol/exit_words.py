"""What each exit code means in plain words: reason, how it comes about, and what to do."""

from __future__ import annotations

Words = tuple[str, tuple[str, ...], tuple[str, ...]]

_TRY_LATER = "Nothing; the job is started again by itself."
_TELL_ADMIN = "Tell the administrator if it happens again."
_READ_LOG = "Read the end of the task's log; the first error is usually the cause."
_LESS_GPU_MEMORY = "Use a smaller batch or model, mixed precision, or a GPU with more memory."

EXIT_WORDS: dict[int, Words] = {
    0: ("The job did what it was asked to do.", ("Every command ended with exit code 0.",), ()),
    -100: (
        "The record of this attempt was deleted by something other than the platform.",
        ("A ConfigMap of the job was removed by hand.", "The cluster lost part of its state."),
        (_TRY_LATER, _TELL_ADMIN),
    ),
    -101: (
        "The task was removed from outside while it ran.",
        (
            "Its pod was deleted by hand.",
            "A job of higher priority took the resources.",
            "The node was drained or lost.",
        ),
        (_TRY_LATER, "Save checkpoints, so that a restart continues instead of beginning again."),
    ),
    -110: (
        "The platform did not see the new attempt in time.",
        ("The cluster's API server was too slow to report a ConfigMap.",),
        (_TRY_LATER, _TELL_ADMIN),
    ),
    -111: (
        "The platform did not see the new task in time.",
        ("The cluster's API server was too slow to report a pod.",),
        (_TRY_LATER, _TELL_ADMIN),
    ),
    -120: (
        "The task could not be created for a reason that should pass.",
        ("The cluster was overloaded or a quota was full for a moment.",),
        (_TRY_LATER, _TELL_ADMIN),
    ),
    -200: (
        "The cluster refuses to create such a task.",
        ("A name, label, resource or volume in the job is not allowed there.",),
        ("Read the diagnostics, correct the job and submit it again.",),
    ),
    -210: ("The job was stopped on request.", ("Somebody stopped it.",), ("Submit it again to run it.",)),
    -220: (
        "The task was ended because its job attempt was over.",
        (
            "Another task failed or reached the number that completes the job.",
            "The job was stopped.",
        ),
        (
            "Look at the task that ended the attempt, not at this one.",
            "Set completion.minSucceededInstances to -1 to wait for all tasks.",
        ),
    ),
    -230: ("The task was removed because its role was made smaller.", ("The role was scaled down.",), ()),
    -300: (
        "The task failed although none of its containers did.",
        ("The node ended the pod without saying why.",),
        (_TELL_ADMIN,),
    ),
    -310: (
        "The task could not be created and the cluster did not say why.",
        ("An admission rule or the API server gave an unusual answer.",),
        ("Read the diagnostics.", _TELL_ADMIN),
    ),
    -1000: (
        "The node pushed the task out.",
        ("The node ran short of disk or memory.",),
        (_TRY_LATER, "Write less to the container's own disk; use a storage instead."),
    ),
    -1001: (
        "The node of the task went away.",
        ("The machine was switched off, crashed or lost its network.",),
        (_TRY_LATER,),
    ),
    -1002: (
        "The task was placed on a node that had no room left.",
        ("Two tasks were given the same resources at the same moment.",),
        (_TRY_LATER,),
    ),
    -1003: (
        "The task made room for a service that the node cannot do without.",
        ("A critical system pod was started there.",),
        (_TRY_LATER,),
    ),
    -1004: (
        "The task used up the time it was given.",
        ("A time limit is set for it.",),
        ("Raise the limit, or save checkpoints and continue in a new job.",),
    ),
    -1005: (
        "The node is not allowed to run this task.",
        ("The job asks for a privilege, device or volume that the node forbids.",),
        ("Take that out of the job, or ask the administrator to allow it.",),
    ),
    -1006: (
        "The node could not accept the task.",
        ("A device plugin or the node's own service did not answer properly.",),
        (_TRY_LATER, _TELL_ADMIN),
    ),
    -1100: (
        "The job was accepted but could not be handed to the cluster.",
        ("The job is larger than the cluster can store, or holds a value it refuses.",),
        ("Make the job smaller (fewer tasks, shorter commands) and submit it again.",),
    ),
    -1200: (
        "The task used more memory than it asked for and was killed.",
        ("The program's memory grew beyond resourcePerInstance.memoryMB.",),
        (
            "Raise memoryMB.",
            "Load less at once: smaller batches, fewer data workers, memory-mapped files.",
        ),
    ),
    -1201: (
        "The container could not be created.",
        ("An option of the container, a mount or the image's settings is not accepted.",),
        ("Read the diagnostics; try the image on another machine.", _TELL_ADMIN),
    ),
    -1202: (
        "The container's start program may not be executed.",
        ("The platform's start script lost its permissions, or the image forbids execution.",),
        ("Try another image.", _TELL_ADMIN),
    ),
    -1203: (
        "The container's start program is not there.",
        ("The image has no shell at the usual place, or a mount hides it.",),
        ("Use an image that contains bash.", _TELL_ADMIN),
    ),
    -1204: (
        "The container could not be started.",
        ("The container engine failed for a reason it did not name.",),
        ("Submit it again; try another image.", _TELL_ADMIN),
    ),
    -1205: (
        "A GPU of the node could not be found.",
        ("The GPU or its driver stopped working.",),
        (_TRY_LATER, _TELL_ADMIN),
    ),
    -1300: (
        "The platform's own preparation step ran out of memory.",
        ("The start-up container was too small for this job.",),
        (_TRY_LATER, _TELL_ADMIN),
    ),
    128: (
        "A GPU of the task has memory errors that cannot be corrected.",
        ("nvidia-smi reports a double-bit ECC error.",),
        ("Submit the job again, if possible to other nodes.", "Ask the administrator to check the GPU."),
    ),
    130: (
        "The task was interrupted (SIGINT).",
        ("The signal came from the platform, or the program raised it itself.",),
        (_TRY_LATER, "Do not end a program with code 130 on purpose."),
    ),
    131: (
        "The task was told to quit (SIGQUIT).",
        ("The signal came from the platform, or the program raised it itself.",),
        (_TRY_LATER, "Do not end a program with code 131 on purpose."),
    ),
    132: (
        "The program ran an instruction that the CPU does not know (SIGILL).",
        ("A library was built for a newer CPU.", "The program file is damaged."),
        ("Use a build for this CPU, for example without AVX.",),
    ),
    134: (
        "The program gave up (SIGABRT).",
        ("An assertion failed or memory was corrupted in native code.",),
        (_READ_LOG,),
    ),
    135: (
        "The program touched memory that is not there (SIGBUS).",
        (
            "Shared memory is full, which data loaders with several workers use.",
            "A mapped file was cut short.",
        ),
        ("Raise extraContainerOptions.shmMB, or use fewer data workers.",),
    ),
    136: (
        "The program made an arithmetic error (SIGFPE).",
        ("A whole number was divided by zero in native code.",),
        ("Check sizes and counts that may be zero.",),
    ),
    137: (
        "The task was killed (SIGKILL).",
        ("The node was short of memory.", "The platform or somebody ended the process by force."),
        (
            _TRY_LATER,
            "Raise memoryMB if memory was near its limit.",
            "Do not end a program with code 137 on purpose.",
        ),
    ),
    139: (
        "The program touched memory that is not its own (SIGSEGV).",
        ("A bug in native code.", "Libraries that do not fit together, such as two CUDA versions."),
        ("Check the versions of native libraries.", "Run with `python -X faulthandler` to see where it is."),
    ),
    141: (
        "The program wrote to a pipe that nobody reads (SIGPIPE).",
        ("A later command of a pipeline, such as head, ended first.",),
        ("Do not cut the output of the main program with a pipe.",),
    ),
    143: (
        "The task was asked to end (SIGTERM).",
        ("The platform ended it, or the program raised the signal itself.",),
        (_TRY_LATER, "Do not end a program with code 143 on purpose."),
    ),
    220: (
        "A command in the job was not found.",
        ("It is misspelt.", "The image does not contain the program."),
        ("Check the spelling, install the program in the commands, or use another image.",),
    ),
    221: (
        "TensorFlow ran out of memory.",
        ("A tensor did not fit into the memory of the device.",),
        (_LESS_GPU_MEMORY,),
    ),
    222: (
        "An MPI process touched memory that is not mapped.",
        ("A bug in native code, or MPI libraries of different versions.",),
        ("Use the same MPI version in every role; run one process alone to find the bug.",),
    ),
    223: (
        "CUDA met a GPU memory error that cannot be corrected.",
        ("The GPU is faulty.",),
        (_TRY_LATER, "Ask the administrator to check the GPU."),
    ),
    224: (
        "The CUDA of the image needs a newer driver than the node has.",
        ("The image was built for a later CUDA version.",),
        ("Use an image for the CUDA version that nvidia-smi shows on the node.",),
    ),
    225: (
        "The cuDNN that was loaded is not the one the program was built for.",
        ("The image contains several cuDNN versions, or an old checkpoint was loaded.",),
        ("Use an image with matching framework and cuDNN versions.",),
    ),
    226: (
        "CUDA ran out of GPU memory.",
        ("Model and batch do not fit into the memory of the GPU.",),
        (_LESS_GPU_MEMORY,),
    ),
    228: (
        "The program was called with options it does not accept.",
        ("An option is misspelt or lacks its value.",),
        ("Compare the command with the program's --help.",),
    ),
    229: (
        "A data or model file could not be read.",
        ("A path is wrong or a storage is not mounted.", "The file is damaged or has another encoding."),
        ("Check the paths in the job and that the storages it needs are listed.",),
    ),
    230: (
        "The path for saving the model is not valid.",
        ("The folder does not exist or is not writable.",),
        ("Create the folder in the commands, or save below the output folder.",),
    ),
    231: (
        "The Python program has an error.",
        ("A syntax error, an unknown name or attribute, or a pickle that cannot be read.",),
        (_READ_LOG, "Run the program for a moment on your own machine first."),
    ),
    232: (
        "A Python module could not be imported.",
        ("A package is not installed in the image, or has another version.",),
        ("Install it in the commands (pip install ...), or use an image that has it.",),
    ),
    233: (
        "The program used an index that is out of range.",
        ("A list, tensor or class label is larger or smaller than expected.",),
        (_READ_LOG, "Check the number of classes and the shape of the data."),
    ),
    234: (
        "Part of the program ended with a segmentation fault.",
        ("A bug in native code or libraries that do not fit together.",),
        ("Check the versions of native libraries.",),
    ),
    235: (
        "Part of the program crashed and left a core dump.",
        ("A bug in native code or libraries that do not fit together.",),
        ("Check the versions of native libraries.", _READ_LOG),
    ),
    249: (
        "The tasks could not reach each other by SSH in time.",
        ("A task had no SSH server, or its port was blocked.",),
        ("Use an image with openssh-server, or raise sshbarrierTimeout.",),
    ),
    250: (
        "The tasks could not wait for each other because the cluster did not answer.",
        ("The API server was away for a moment.",),
        (_TRY_LATER,),
    ),
    251: (
        "Not all tasks got their resources in time, so none was started.",
        ("The cluster is busy and several jobs wait for the same resources.",),
        (_TRY_LATER, "Ask for less, or wait until the cluster is less busy."),
    ),
    252: (
        "The tasks cannot wait for each other in this cluster.",
        ("The runtime has no access to the API server.",),
        (_TELL_ADMIN,),
    ),
    253: (
        "A port of the task is in use on the node.",
        ("Another task on the same node was given the same port.",),
        (_TRY_LATER,),
    ),
    254: (
        "The image does not exist or may not be pulled.",
        ("Its name or tag is misspelt.", "The registry wants a login."),
        ("Check the image's uri; give auth in the prerequisite for a private registry.",),
    ),
    255: (
        "The program failed and its log does not say why in a known way.",
        ("A command ended with an exit code other than 0.",),
        (_READ_LOG, "Set jobRetryCount if it fails only sometimes."),
    ),
    256: (
        "The task ended with an exit code that has no meaning of its own.",
        ("The runtime was ended before it could find the cause.",),
        (_READ_LOG, _TELL_ADMIN),
    ),
    -8000: (
        "The platform ended the task with a code that has no meaning of its own.",
        ("The container engine or the cluster failed in a new way.",),
        (_READ_LOG, _TELL_ADMIN),
    ),
}
