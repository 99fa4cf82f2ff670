//! envtest of controller-runtime: the names under which it starts programs, and what to type before the
//! tests.
//!
//! The name that this process was started by goes in; which program it is to be comes out. The programs are
//! in [`apiserver`], which [`crate::kube_apiserver`] chooses, and [`etcd`]. Never: writes a link itself.

pub mod apiserver;
pub mod etcd;

use std::env;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// What this process is to be, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    KubeApiserver,
    Etcd,
}

impl Program {
    /// The program that envtest, or a manifest, means by `name`, the first of a process's arguments.
    pub fn named(name: Option<&OsStr>) -> Option<Self> {
        match Path::new(name?).file_name()?.to_str()? {
            "kube-apiserver" => Some(Self::KubeApiserver),
            "etcd" => Some(Self::Etcd),
            _ => None,
        }
    }
}

/// Prints what to type, as lines that a shell can run.
///
/// - `dir`: where the links go; without it a directory of the user's cache.
///
/// # Errors
/// [`Error::Usage`]: the user has no cache. [`Error::Output`].
pub fn print(dir: Option<&str>, out: &mut dyn Write) -> Result<(), Error> {
    let dir = match dir {
        Some(dir) => PathBuf::from(dir),
        None => cache_dir()?.join("forebay").join("envtest"),
    };
    // Tests run in the directories of their packages.
    let dir = std::path::absolute(dir)?;
    let program = env::current_exe()?;
    Ok(out.write_all(lines(&program, &dir).as_bytes())?)
}

fn cache_dir() -> Result<PathBuf, Error> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| Some(set("HOME")?.join(".cache")))
        .ok_or_else(|| Error::Usage("HOME is not set; name a directory: forebay envtest DIR".to_owned()))
}

fn lines(program: &Path, dir: &Path) -> String {
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let (program, assets) = (quoted(program), quoted(dir));
    let link = |name: &str| quoted(&dir.join(name));
    format!(
        "\
# envtest starts programs by name, and forebay is what its name says. Run these lines before the tests:
#   eval \"$(forebay envtest)\"
mkdir -p {assets}
ln -sf {program} {apiserver}
ln -sf {program} {etcd}
export KUBEBUILDER_ASSETS={assets}
# Each kube-apiserver keeps its data in a new directory below its --cert-dir, which envtest makes and
# removes. \"etcd\" only answers envtest's health check and stores nothing. Both end with the tests.
# Where another setup has the rest, one line is enough:
#   export TEST_ASSET_KUBE_APISERVER={apiserver}
# Tests that run kubectl need it there too:
#   ln -sf \"$(command -v kubectl)\" {kubectl}
",
        apiserver = link("kube-apiserver"),
        etcd = link("etcd"),
        kubectl = link("kubectl"),
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_last_part_of_the_name_decides() {
        let named = |name: &str| Program::named(Some(OsStr::new(name)));
        assert_eq!(named("kube-apiserver"), Some(Program::KubeApiserver));
        assert_eq!(named("./bin/kube-apiserver"), Some(Program::KubeApiserver));
        assert_eq!(named("/assets/etcd"), Some(Program::Etcd));
        for other in ["forebay", "/x/kube-apiserver/forebay", "kube-apiserver-1", "/", ""] {
            assert_eq!(named(other), None, "{other}");
        }
        assert_eq!(Program::named(None), None);
    }

    #[test]
    fn what_to_type_is_told_as_a_shell_takes_it() {
        expect![[r#"
            # envtest starts programs by name, and forebay is what its name says. Run these lines before the tests:
            #   eval "$(forebay envtest)"
            mkdir -p '/home/o'\''hara/envtest'
            ln -sf '/usr/bin/forebay' '/home/o'\''hara/envtest/kube-apiserver'
            ln -sf '/usr/bin/forebay' '/home/o'\''hara/envtest/etcd'
            export KUBEBUILDER_ASSETS='/home/o'\''hara/envtest'
            # Each kube-apiserver keeps its data in a new directory below its --cert-dir, which envtest makes and
            # removes. "etcd" only answers envtest's health check and stores nothing. Both end with the tests.
            # Where another setup has the rest, one line is enough:
            #   export TEST_ASSET_KUBE_APISERVER='/home/o'\''hara/envtest/kube-apiserver'
            # Tests that run kubectl need it there too:
            #   ln -sf "$(command -v kubectl)" '/home/o'\''hara/envtest/kubectl'
        "#]]
        .assert_eq(&lines(Path::new("/usr/bin/forebay"), Path::new("/home/o'hara/envtest")));
    }
}
