"""The bake-off: what the default earns beside other libraries, on raw features, with nothing tuned."""
