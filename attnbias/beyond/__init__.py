"""What lies beyond the paper, one room a topic; rooms import the core, never the other way."""
