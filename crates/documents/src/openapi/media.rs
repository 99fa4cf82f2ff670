//! The media types that documents name, in kube-apiserver's order. What is not served is not named.

/// What built-in objects are answered in.
pub const OBJECTS: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// What watches of them are answered in besides.
pub const STREAMS: &[&str] =
    &["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// What custom objects are answered in, and taken in.
pub const CUSTOM_OBJECTS: &[&str] = &["application/json", "application/yaml"];

/// What a built-in resource takes in a body: upstream says anything, and looks when it comes.
pub const ANY: &[&str] = &["*/*"];

/// What a patch of a built-in resource may be.
pub const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// What a patch of a custom resource may be.
pub const CUSTOM_PATCHES: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
