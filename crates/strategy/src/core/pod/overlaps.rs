//! What is said of files that one volume would have twice.
//!
//! In: a pod's spec. Out: warnings in kube-apiserver's words. Never: whether a path is a good one.
//!
//! Source: kubernetes v1.36.3 `pkg/api/pod`.

use std::collections::HashMap;

use forebay_apimachinery::steps;

use crate::limits::PAIRS_MAX;
use crate::value::{Members, child, child_or_empty, objects, text};

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
}

/// The directories of a volume, one a step of its files' paths, and which files are where.
#[derive(Default)]
struct Directory {
    // Files of this very path, in order.
    here: Vec<usize>,
    // Files of paths that begin with this one, in order, those of this very path among them.
    below: Vec<usize>,
}

/// Files by their paths.
struct Tree<'f> {
    directories: Vec<Directory>,
    // directory and name -> the directory below
    names: HashMap<(usize, &'f str), usize>,
}

impl<'f> Tree<'f> {
    fn new() -> Tree<'f> {
        Tree { directories: vec![Directory::default()], names: HashMap::new() }
    }

    /// Takes in the file at `index`. Out: those before it that are in its way, in order, but no more than
    /// `most`.
    ///
    /// Two are in each other's way when their paths are one, or one leads through the other.
    fn add(&mut self, index: usize, path: &'f str, most: usize) -> Vec<usize> {
        let (mut at, mut found) = (0, Vec::new());
        for name in path.split('/') {
            steps::add(1);
            let next = self.directories.len();
            found.extend(self.directories[at].here.iter().take(most));
            at = *self.names.entry((at, name)).or_insert(next);
            if at == next {
                self.directories.push(Directory::default());
            }
            self.directories[at].below.push(index);
        }
        // The last of them is the file itself.
        let below = &self.directories[at].below;
        found.extend(below[..below.len() - 1].iter().take(most));
        steps::add(found.len() as u64);
        self.directories[at].here.push(index);
        found.sort_unstable();
        found.truncate(most);
        found
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
    let (mut tree, mut left) = (Tree::new(), PAIRS_MAX);
    for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.path.is_empty()) {
        if left == 0 {
            return;
        }
        let others = tree.add(index, &file.path, left);
        left -= others.len();
        for other in others {
            let (file, other) = (file.shown(), files[other].shown());
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
