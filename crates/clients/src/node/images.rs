//! Which program an image stands for.
//!
//! In: an image's name, as a container has it. Out: what to start for it, with the path by which the image
//! has it. Never: an image pulled; a version looked at.

use std::path::PathBuf;

/// The programs of the images that pods of upstream's specs are made of.
#[derive(Debug, Clone)]
pub struct Images {
    pub agnhost: PathBuf,
    pub etcd: PathBuf,
    pub sample_apiserver: PathBuf,
}

/// What runs as a container of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Program {
    /// Nothing: specs want of it that it runs, and nobody asks it anything.
    Idle,
    /// A program that needs nothing beside it, where the image has it, and its arguments unless others are
    /// given.
    Binary { file: PathBuf, at: &'static str, args: &'static [&'static str] },
}

impl Images {
    pub(super) fn program(&self, image: &str) -> Result<Program, String> {
        let name = image.rsplit('/').next().unwrap_or(image);
        let name = name.split([':', '@']).next().unwrap_or(name);
        let binary = |file: &PathBuf, at, args| Program::Binary { file: file.clone(), at, args };
        match name {
            "pause" | "nginx" => Ok(Program::Idle),
            "agnhost" => Ok(binary(&self.agnhost, "/agnhost", &["pause"])),
            "etcd" => Ok(binary(&self.etcd, "/usr/local/bin/etcd", &[])),
            "sample-apiserver" => Ok(binary(&self.sample_apiserver, "/sample-apiserver", &[])),
            _ => Err(format!("no program stands for the image {image}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_the_end_of_its_name_and_others_are_refused() {
        let path = |name: &str| PathBuf::from(format!("/bin/{name}"));
        let images = Images { agnhost: path("a"), etcd: path("e"), sample_apiserver: path("s") };
        let of = |image: &str| images.program(image);
        let etcd = Program::Binary { file: path("e"), at: "/usr/local/bin/etcd", args: &[] };
        assert_eq!(of("registry.k8s.io/etcd:3.6.8-0"), Ok(etcd));
        assert_eq!(of("localhost:5000/pause@sha256:00"), Ok(Program::Idle));
        assert!(of("busybox").is_err());
    }
}
