//! CertificateSubjectRestriction: nobody asks for a certificate of those who may do anything.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/certificates/subjectrestriction`.

use serde_json::Value;

use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};
use forebay_api::Eventual;
use forebay_strategy::subject_restriction;

pub struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && write.is_of("certificates.k8s.io", "certificatesigningrequests")
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        _: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let restricted = subject_restriction(object);
        Eventual::Now(restricted.map_or(Ok(()), |why| Err(write.forbidden(object, &why))))
    }
}
