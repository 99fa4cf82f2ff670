//! Subresources whose body is not the object itself: scale, binding.

use forebay_apimachinery::options::{CreateOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Reason, Status};

use crate::patch::Patch;
use crate::registry::Registry;
use crate::request::{Answer, Body, Target};

impl Registry {
    pub(crate) async fn create_subresource(&self, target: &Target, subresource: &str, _body: &Body, _options: &CreateOptions) -> Result<Answer, Status> {
        let _ = subresource;
        Err(crate::errors::method_not_supported(&target.served, "create"))
    }

    pub(crate) async fn update_scale(&self, target: &Target, _body: &Body, _options: &UpdateOptions) -> Result<Answer, Status> {
        Err(crate::errors::method_not_supported(&target.served, "update"))
    }

    pub(crate) async fn patch_scale(&self, _target: &Target, _patch: &Patch, _options: &PatchOptions) -> Result<Answer, Status> {
        Err(Status::new(Reason::MethodNotAllowed, "in work"))
    }
}
