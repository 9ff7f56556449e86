"""Rules of manifests: what is wrong in a set of rendered objects although a cluster runs it."""
