//! The verbs: read and watch plans, guarded update, patch, admission, discovery.
