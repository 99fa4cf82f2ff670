//! `--tracing-config-file`: a TracingConfiguration.
//!
//! In: a path. Out: where spans go, and of how many requests. Never: sends one.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use forebay_spans::TracingConfiguration;

use crate::error::Error;

/// It has four members.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// # Errors
/// A file that is not there, or is something else.
pub fn read(path: &Path) -> Result<TracingConfiguration, Error> {
    let wrong = |reason: String| Error::TracingFile { path: path.to_owned(), reason };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(Error::file("read", path))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    let said = serde_saphyr::from_str(&text).map_err(|why| wrong(why.to_string()))?;
    TracingConfiguration::of(&said).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use forebay_scratch::Scratch;

    use super::*;

    #[test]
    fn a_configuration_is_read_and_what_is_none_is_refused_by_its_name() {
        let scratch = Scratch::new();
        let path = scratch.path().join("tracing.yaml");
        let read_as = |text: &str| {
            fs::write(&path, text).expect("a file");
            read(&path).map_err(|why| why.to_string().replace(&path.display().to_string(), "FILE"))
        };
        let good = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nsamplingRatePerMillion: 100\n";
        assert_eq!(read_as(good).expect("read").sampling_rate_per_million, 100);
        assert_eq!(
            read_as("kind: Pod").expect_err("refused"),
            "tracing configuration FILE: no kind \"Pod\" is registered for version \"\""
        );
        assert!(read(&scratch.path().join("none")).is_err());
    }
}
