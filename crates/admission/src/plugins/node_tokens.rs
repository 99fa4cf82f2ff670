//! Tokens that a node asks for: bound to a pod that is on it, and for whom that pod's volumes take one.
//!
//! In: a TokenRequest by a node. Out: a refusal in kube-apiserver's words.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/noderestriction` (`admitServiceAccount`,
//! `validateNodeServiceAccountAudience`); csi-translation-lib v0.36.3 `plugins`.

use forebay_api::told_together;
use forebay_apimachinery::{About, Attributes, ResourceAttributes, Status, Verb};
use serde_json::Value;

use super::node_objects::text;
use super::node_restriction::PODS;
use super::service_account::items;
use crate::plugin::{ReadFrom, Tools, WriteAttributes};

const CLAIMS: ReadFrom = ("", "persistentvolumeclaims");
const VOLUMES: ReadFrom = ("", "persistentvolumes");
const DRIVERS: ReadFrom = ("storage.k8s.io", "csidrivers");

/// What lets a node ask for tokens for an audience that its pods' volumes take none for.
const REQUEST_AUDIENCE: &str = "request-serviceaccounts-token-audience";

/// Volumes of clouds, which drivers have taken over.
const TAKEN_OVER: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

/// See the module's doc.
///
/// # Errors
/// 403, and 404 for a pod that is not there.
pub(super) async fn admit(
    write: &WriteAttributes<'_>,
    node: &str,
    request: &Value,
    tools: &Tools<'_>,
) -> Result<(), Status> {
    let refuse = |why: &str| write.forbidden_as(write.of.name, why);
    if node.is_empty() {
        let user = write.caller.map_or("", |caller| caller.name.as_str());
        return Err(refuse(&format!("could not determine node from user {user:?}")));
    }
    let bound = &request["spec"]["boundObjectRef"];
    let (name, uid) = (text(bound, "name"), text(bound, "uid"));
    if text(bound, "apiVersion") != "v1" || text(bound, "kind") != "Pod" || name.is_empty() {
        return Err(refuse("node requested token not bound to a pod"));
    }
    if uid.is_empty() {
        return Err(refuse("node requested token with a pod binding without a uid"));
    }
    let pod = tree(tools, PODS, write.of.namespace, name);
    let pod = pod.ok_or_else(|| Status::not_found("", "pod", name))?;
    if text(&pod["metadata"], "uid") != uid {
        return Err(refuse(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted \
             and then recreated"
        )));
    }
    if text(&pod["spec"], "nodeName") != node {
        return Err(refuse("node requested token bound to a pod scheduled on a different node"));
    }
    audience(write, &pod, request, tools).await.map_err(|why| refuse(&why))
}

/// Whether a volume of the pod takes a token for the audience, or the node may ask for it all the same.
async fn audience(
    write: &WriteAttributes<'_>,
    pod: &Value,
    request: &Value,
    tools: &Tools<'_>,
) -> Result<(), String> {
    let audiences: Vec<&str> =
        items(&request["spec"]["audiences"]).map(|one| one.as_str().unwrap_or("")).collect();
    let audience = match audiences.as_slice() {
        [] => "",
        [only] => only,
        _ => return Err("node may only request 0 or 1 audiences".to_owned()),
    };
    if is_referenced(write.of.namespace, pod, audience, tools)
        .map_err(|why| format!("error validating audience {audience:?}: {why}"))?
    {
        return Ok(());
    }
    let Some(caller) = write.caller else { return Ok(()) };
    let of = ResourceAttributes {
        version: "v1",
        namespace: write.of.namespace,
        resource: audience,
        name: write.of.name,
        ..ResourceAttributes::default()
    };
    let verb = Verb::named(REQUEST_AUDIENCE);
    let asked = Attributes { caller, verb: &verb, about: About::Resource(of) };
    let decision = tools.authorizer.authorize(&asked).wait().await;
    let user = &caller.name;
    match (decision.is_allowed(), decision.error()) {
        (true, _) => Ok(()),
        (false, Some(error)) => Err(format!(
            "audience {audience:?} not found in pod spec volume, error authorizing {user} to request tokens for this audience: \
             {error}"
        )),
        (false, None) => Err(format!(
            "audience {audience:?} not found in pod spec volume, {user} is not authorized to request tokens for this audience"
        )),
    }
}

/// # Errors
/// What could not be looked up, unless a volume was found all the same.
fn is_referenced(namespace: &str, pod: &Value, audience: &str, tools: &Tools<'_>) -> Result<bool, String> {
    let mut errors = Vec::new();
    for volume in items(&pod["spec"]["volumes"]) {
        let is_projected = items(&volume["projected"]["sources"]).any(|source| {
            let token = &source["serviceAccountToken"];
            token.is_object() && text(token, "audience") == audience
        });
        if is_projected {
            return Ok(true);
        }
        let has = driver(namespace, pod, volume, tools).and_then(|driver| match driver {
            Some(driver) => driver_has(&driver, audience, tools),
            None => Ok(false),
        });
        match has {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(why) => errors.push(why),
        }
    }
    if errors.is_empty() { Ok(false) } else { Err(told_together(&errors)) }
}

/// The driver of a volume of a pod, if it has one.
fn driver(namespace: &str, pod: &Value, volume: &Value, tools: &Tools<'_>) -> Result<Option<String>, String> {
    if volume["ephemeral"]["volumeClaimTemplate"].is_object() {
        let claim = format!("{}-{}", text(&pod["metadata"], "name"), text(volume, "name"));
        return of_claim(namespace, &claim, tools);
    }
    if volume["persistentVolumeClaim"].is_object() {
        return of_claim(namespace, text(&volume["persistentVolumeClaim"], "claimName"), tools);
    }
    Ok(of_source(volume))
}

fn of_claim(namespace: &str, name: &str, tools: &Tools<'_>) -> Result<Option<String>, String> {
    let claim = tree(tools, CLAIMS, namespace, name)
        .ok_or_else(|| format!("persistentvolumeclaim {name:?} not found"))?;
    let volume = text(&claim["spec"], "volumeName");
    let volume =
        tree(tools, VOLUMES, "", volume).ok_or_else(|| format!("persistentvolume {volume:?} not found"))?;
    Ok(of_source(&volume["spec"]))
}

fn of_source(source: &Value) -> Option<String> {
    if source["csi"].is_object() {
        return Some(text(&source["csi"], "driver").to_owned()).filter(|driver| !driver.is_empty());
    }
    let taken_over = TAKEN_OVER.iter().find(|(of, _)| source[of].is_object());
    taken_over.map(|(_, driver)| (*driver).to_owned())
}

fn driver_has(name: &str, audience: &str, tools: &Tools<'_>) -> Result<bool, String> {
    let driver = tree(tools, DRIVERS, "", name)
        .ok_or_else(|| format!("csidriver.storage.k8s.io {name:?} not found"))?;
    Ok(items(&driver["spec"]["tokenRequests"]).any(|request| text(request, "audience") == audience))
}

/// An object as it is cached.
fn tree(tools: &Tools<'_>, from: ReadFrom, namespace: &str, name: &str) -> Option<Value> {
    let found = tools.lookup.cached(from, namespace, name)?;
    serde_json::from_slice(&found.untyped_json()).ok()
}
