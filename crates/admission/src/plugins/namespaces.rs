//! NamespaceAutoProvision and NamespaceExists: a namespace that somebody writes into is made, or is asked
//! for again on deletes and updates.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/namespace/{autoprovision,exists}`.

use forebay_api::Eventual;
use forebay_apimachinery::Status;
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Switch, Tools, WriteAttributes};

const NAMESPACES: ReadFrom = ("", "namespaces");

pub struct NamespaceAutoProvision;

pub struct NamespaceExists;

impl Plugin for NamespaceAutoProvision {
    fn name(&self) -> &'static str {
        "NamespaceAutoProvision"
    }

    fn switch(&self) -> Switch {
        Switch::IfEnabled
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && is_in_one(write) && !write.dry_run
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let namespace = write.of.namespace;
        if tools.lookup.cached(NAMESPACES, "", namespace).is_some() {
            return Eventual::Now(Ok(()));
        }
        Eventual::later(async move {
            let made = tools.lookup.make_namespace(namespace).wait().await;
            made.map_err(|status| write.forbidden(object, &status.message))
        })
    }
}

impl Plugin for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn switch(&self) -> Switch {
        Switch::IfEnabled
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        (write.creates() || write.updates() || write.deletes()) && is_in_one(write)
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        _: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let namespace = write.of.namespace;
        if tools.lookup.cached(NAMESPACES, "", namespace).is_some() {
            return Eventual::Now(Ok(()));
        }
        Eventual::later(async move {
            match tools.lookup.live(NAMESPACES, "", namespace).wait().await? {
                Some(_) => Ok(()),
                None => Err(Status::not_found("", "namespaces", namespace)),
            }
        })
    }
}

fn is_in_one(write: &WriteAttributes<'_>) -> bool {
    !write.of.namespace.is_empty() && (write.of.group, write.of.resource) != NAMESPACES
}
