"""Example workflows and the tasks that they call."""
