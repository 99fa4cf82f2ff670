//! Kubernetes vocabulary: revisions, keys, objects, selectors, media types, options, Status as data.
