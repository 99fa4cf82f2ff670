//! What a certificate is to be for.
//!
//! In: the uses that it names. Out: whether ours is among them. Never: anything else that it says.

use std::cell::Cell;

use webpki::{
    Error, ExtendedKeyUsageValidator, KeyPurposeId, KeyPurposeIdIter, KeyUsage, RequiredEkuNotFoundContext,
};
use x509_parser::prelude::X509Certificate;

use crate::limits::PATH_STEPS_MAX;

/// Who shows it: somebody who connects, or whom somebody connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Clients,
    Servers,
}

impl Purpose {
    /// Whether a certificate is for it: it says so, or that it is for everything, or nothing.
    pub(crate) fn is_of(self, certificate: &X509Certificate<'_>) -> Result<bool, Error> {
        let uses = certificate.extended_key_usage().map_err(|_| Error::BadDer)?;
        Ok(uses.is_none_or(|uses| {
            uses.value.any
                || match self {
                    Purpose::Clients => uses.value.client_auth,
                    Purpose::Servers => uses.value.server_auth,
                }
        }))
    }

    /// It is not for that.
    pub(crate) fn missed(self) -> Error {
        let required = match self {
            Purpose::Clients => KeyUsage::client_auth(),
            Purpose::Servers => KeyUsage::server_auth(),
        };
        Error::RequiredEkuNotFoundContext(RequiredEkuNotFoundContext { required, present: Vec::new() })
    }

    /// Asked for each certificate on a path.
    pub(crate) fn of_a_path(self) -> PathPurpose {
        PathPurpose { purpose: self, steps_left: Cell::new(PATH_STEPS_MAX) }
    }
}

/// It is asked for each certificate with which webpki goes on, and so knows how long it has been looking.
pub(crate) struct PathPurpose {
    purpose: Purpose,
    steps_left: Cell<usize>,
}

impl ExtendedKeyUsageValidator for PathPurpose {
    fn validate(&self, mut uses: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        const SERVER: KeyPurposeId<'_> = KeyPurposeId::new(&[0x2b, 6, 1, 5, 5, 7, 3, 1]);
        const CLIENT: KeyPurposeId<'_> = KeyPurposeId::new(&[0x2b, 6, 1, 5, 5, 7, 3, 2]);
        const ANY: KeyPurposeId<'_> = KeyPurposeId::new(&[0x55, 0x1d, 0x25, 0]);
        let left = self.steps_left.get().checked_sub(1).ok_or(Error::MaximumPathBuildCallsExceeded)?;
        self.steps_left.set(left);
        let Some(first) = uses.next() else { return Ok(()) };
        let ours = match self.purpose {
            Purpose::Clients => CLIENT,
            Purpose::Servers => SERVER,
        };
        for one in std::iter::once(first).chain(uses) {
            if [&ours, &ANY].contains(&&one?) {
                return Ok(());
            }
        }
        Err(self.purpose.missed())
    }
}
