//! Requests for certificates: approved where a node asks for its own, signed once they are approved, and
//! deleted when their time is over.
//!
//! In: notices of CertificateSigningRequests. Out: conditions, certificates, deletes. Never: keeps a request;
//! approves one for whom the authorizer does not say so.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates`.

mod approve;
mod clean;
mod recognize;
mod request;
mod sign;

pub use approve::CertificateApprover;
pub use clean::CertificateCleaner;
pub use sign::{CertificateSigner, Signing};
