"""Many runs advanced together on one device, and one iteration of them all."""
