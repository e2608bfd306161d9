"""What the book's pages are made with; the wheel has none of it."""
