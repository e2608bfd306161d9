"""What builds and keeps the repository; no part of the library."""
