"""Other libraries behind one small protocol. Every file needs numpy, scipy and that library alone."""
