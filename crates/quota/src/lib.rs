//! What objects take of the quotas of their namespace, and what limit ranges say of them.
//!
//! In: objects as trees of a form that the codec made canonical, quotas, the time. Out: amounts, what a
//! request adds to which quota, or why it may not, in kube-apiserver's words. Admission and a controller ask
//! the same functions. Never: IO, a store, a clock.
//!
//! Source: kubernetes v1.36.3 `pkg/quota/v1`, `plugin/pkg/admission/limitranger`; apiserver v0.36.3
//! `pkg/quota/v1`, `pkg/admission/plugin/resourcequota`.

mod amounts;
mod check;
mod devices;
mod evaluator;
mod limit_defaults;
mod limit_range;
mod limited;
mod limits;
mod pod;
#[cfg(test)]
mod ranges_of_tests;
mod resource_quota;
mod subject;
mod unsaid;

pub use amounts::{Amount, Amounts};
pub use check::{Charge, Charged, QuotaRefusal, charge};
pub use devices::DeviceClasses;
pub use evaluator::Evaluator;
pub use limit_defaults::{Unfilled, fill_in};
pub use limit_range::{judge_claim, judge_pod};
pub use limited::{LimitedResources, ToCover};
pub use pod::{AmountList, By, sum};
pub use resource_quota::ResourceQuota;
pub use subject::QuotaSubject;
pub use unsaid::Unsaid;
