//! The Scale of an object, and why there is none.

use bytes::Bytes;
use forebay_apimachinery::Status;
use forebay_object::Object;
use forebay_schema::builtin::{codec, table};
use forebay_strategy::{self as strategy, ScaleError};

use crate::ruled::Ruled as _;
use forebay_catalog::Target;

pub(crate) fn of(target: &Target, object: &Object) -> Result<Bytes, Status> {
    let value = target.served.to_value(object)?;
    let scale = strategy::to_scale(&target.served.rules(), &value).map_err(|error| refused(target, error))?;
    let mut out = Vec::new();
    match table().kind("autoscaling", "v1", "Scale") {
        Some(kind) => codec::write_json(kind.ty, &scale, &mut out).map_err(Status::internal)?,
        None => forebay_apimachinery::json::write_sorted(&scale, &mut out),
    }
    out.push(b'\n');
    Ok(Bytes::from(out))
}

pub(crate) fn refused(target: &Target, error: ScaleError) -> Status {
    let served = &target.served;
    match error {
        ScaleError::NoReplicas(why) | ScaleError::Unreadable(why) => Status::internal(why),
        ScaleError::Empty(why) => Status::bad_request(why),
        ScaleError::Invalid(causes) => Status::invalid("autoscaling", "Scale", target.name(), causes),
        ScaleError::OtherUid(why) => Status::conflict(served.group(), served.resource(), target.name(), &why),
    }
}
