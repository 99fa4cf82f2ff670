//! Whom the certificate of the connection names.

use forebay_api::{Authentication, Authenticator, Eventual, Presented};

/// Believes a certificate as far as whoever judged it does.
pub struct ShownCertificate;

impl Authenticator for ShownCertificate {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Eventual<'a, Authentication> {
        Eventual::Now(presented.certificate.map_or(Authentication::NoOpinion, |shown| shown.holder()))
    }
}
