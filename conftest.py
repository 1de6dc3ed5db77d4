"""What pytest leaves alone where a package is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyspark") else ["src/sketchmeans/spark/*"]
