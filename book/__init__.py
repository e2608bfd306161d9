"""The book: chapters, and the code that writes or draws pages of it; in no package."""
