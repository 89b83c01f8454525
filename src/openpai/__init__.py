"""The name under which programs inside a job import the runtime: `from openpai.runtime import Runtime`."""
