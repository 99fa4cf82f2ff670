//! The columns of kubectl get: Table rows of the built-in kinds and of custom resources.
