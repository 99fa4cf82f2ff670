//! What is said of files that one volume would have twice.
//!
//! In: a pod's spec. Out: warnings in kube-apiserver's words. Never: whether a path is a good one.
//!
//! Source: kubernetes v1.36.3 `pkg/api/pod`.

use crate::strategy::value::{Members, child, child_or_empty, objects, text};

/// A file in a volume, and where it comes from if the volume has several sources.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn new(path: &str, source: &str) -> File {
        File { path: path.trim_end_matches('/').to_string(), source: source.to_string() }
    }

    fn shown(&self) -> String {
        match self.source.as_str() {
            "" => format!("{:?}", self.path),
            source => format!("{:?} ({source})", self.path),
        }
    }

    fn is_in_the_way_of(&self, other: &File) -> bool {
        let below = |path: &str, of: &str| {
            path == of || path.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'))
        };
        let both = !self.path.is_empty() && !other.path.is_empty();
        both && (below(&self.path, &other.path) || below(&other.path, &self.path))
    }
}

/// Files of a volume whose paths are equal, or one below the other.
pub fn warn(spec: &Members, out: &mut Vec<String>) {
    for volume in objects(spec, "volumes") {
        let name = text(volume, "name");
        for (kind, title, named) in [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")] {
            if let Some(source) = child(volume, kind) {
                let title = format!("{title} {:?}", text(source, named));
                of_volume(name, &title, items(source, ""), out);
            }
        }
        if let Some(source) = child(volume, "downwardAPI") {
            of_volume(name, "DownwardAPI", items(source, ""), out);
        }
        if let Some(projected) = child(volume, "projected") {
            let mut files = Vec::new();
            for source in objects(projected, "sources") {
                if source.is_empty() {
                    out.push(format!("volume {name:?} (Projected) has no sources provided"));
                }
                files.extend(projection(source));
            }
            of_volume(name, "Projected", files, out);
        }
    }
}

fn of_volume(name: &str, title: &str, files: Vec<File>, out: &mut Vec<String>) {
    for (index, file) in files.iter().enumerate() {
        for other in files[..index].iter().filter(|other| other.is_in_the_way_of(file)) {
            let (file, other) = (file.shown(), other.shown());
            out.push(format!("volume {name:?} ({title}): overlapping paths: {file} with {other}"));
        }
    }
}

fn items(source: &Members, title: &str) -> Vec<File> {
    objects(source, "items").map(|item| File::new(text(item, "path"), title)).collect()
}

fn projection(source: &Members) -> Vec<File> {
    for (kind, title) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        if let Some(source) = child(source, kind).filter(|source| source.contains_key("items")) {
            return items(source, &format!("{title} {:?}", text(source, "name")));
        }
    }
    if let Some(source) = child(source, "downwardAPI").filter(|source| source.contains_key("items")) {
        return items(source, "DownwardAPI");
    }
    if let Some(token) = child(source, "serviceAccountToken") {
        return vec![File::new(text(token, "path"), "ServiceAccountToken")];
    }
    if let Some(bundle) = child(source, "clusterTrustBundle") {
        let named = if bundle.contains_key("name") { "name" } else { "signerName" };
        return vec![File::new(
            text(bundle, "path"),
            &format!("ClusterTrustBundle {:?}", text(bundle, named)),
        )];
    }
    let certificate = child_or_empty(source, "podCertificate");
    [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ]
    .into_iter()
    .map(|(member, title)| File::new(text(certificate, member), title))
    .filter(|file| !file.path.is_empty())
    .collect()
}
