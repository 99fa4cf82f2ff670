//! The files of `--tls-sni-cert-key`: certificates for those who ask for a name, with their keys.
//!
//! In: where they are, and the names that they were given with. Out: what is shown. Never: chooses among
//! them; that is transport's.

use forebay_endpoints::config::{NamedCertificate, NamesBy};
use forebay_pki::NamedFiles;
use forebay_pki::given::GivenServing;
use jiff::Timestamp;

use crate::error::Error;

/// Reads all pairs.
///
/// - `warnings`: gets what somebody should look after.
///
/// # Errors
/// A file that cannot be used.
pub fn read(
    all: &[NamedFiles],
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<Vec<NamedCertificate>, Error> {
    let read = |NamedFiles { files, names }: &NamedFiles| {
        let GivenServing { pair, asked_by, .. } = GivenServing::read(files, None, now, warnings)?;
        let (names, said_by) = match names.is_empty() {
            true => (asked_by, NamesBy::Itself),
            false => (names.clone(), NamesBy::Giver),
        };
        Ok(NamedCertificate { cert_chain: pair.cert, key: pair.key, names, said_by })
    };
    all.iter().map(read).collect()
}
