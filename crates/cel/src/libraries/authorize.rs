//! `authorizer`: checks put together step by step, then asked.

use super::function::{Context, Found, Plain, wrong};
use crate::authorizer::{Asker, Check, ResourceCheck};
use crate::error::Error;
use crate::objects::Object;
use crate::value::{TextValue, Value};

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "path" => |args, _| path(args),
        "group" => |args, _| match args {
            [Value::Object(it), Value::String(group)] => match &**it {
                Object::Authorizer(asker) => {
                    check(Check::Group { asker: asker.clone(), group: (**group).into() })
                }
                _ => wrong(),
            },
            _ => wrong(),
        },
        "serviceAccount" => |args, _| service_account(args),
        "resource" => |args, _| resource(args),
        "subresource" => |args, _| with(args, |check, text| check.subresource = text.into()),
        "namespace" => |args, _| with(args, |check, text| check.namespace = text.into()),
        "name" => |args, _| with(args, |check, text| check.name = text.into()),
        "fieldSelector" => |args, _| with(args, |check, text| check.field_selector = text.into()),
        "labelSelector" => |args, _| with(args, |check, text| check.label_selector = text.into()),
        "check" => |args, context| ask(args, context),
        "allowed" => |args, _| decided(args, |it| Value::Bool(it.allowed)),
        "reason" => |args, _| decided(args, |it| Value::String(TextValue::Shared(it.reason.clone()))),
        "errored" => |args, _| decided(args, |it| Value::Bool(it.error.is_some())),
        "error" => |args, _| decided(args, |it| Value::text(it.error.as_deref().unwrap_or_default())),
        _ => return None,
    })
}

fn check<'a>(check: Check) -> Found<'a> {
    Ok(Value::object(Object::Check(check)))
}

fn path<'a>(args: &[Value<'a>]) -> Found<'a> {
    let [Value::Object(it), Value::String(path)] = args else { return wrong() };
    let Object::Authorizer(asker) = &**it else { return wrong() };
    if path.trim().is_empty() {
        return Err(Error::new("path must not be empty"));
    }
    check(Check::Path { asker: asker.clone(), path: (**path).into() })
}

fn service_account<'a>(args: &[Value<'a>]) -> Found<'a> {
    let [Value::Object(it), Value::String(namespace), Value::String(name)] = args else { return wrong() };
    let Object::Authorizer(_) = &**it else { return wrong() };
    if !crate::objects::format::is_subdomain(name) {
        return Err(Error::new("Invalid service account name"));
    }
    if !crate::objects::format::is_label(namespace) {
        return Err(Error::new("Invalid service account namespace"));
    }
    let asker = Asker::ServiceAccount { namespace: (**namespace).into(), name: (**name).into() };
    Ok(Value::object(Object::Authorizer(asker)))
}

fn resource<'a>(args: &[Value<'a>]) -> Found<'a> {
    let [Value::Object(it), Value::String(resource)] = args else { return wrong() };
    let Object::Check(Check::Group { asker, group }) = &**it else { return wrong() };
    if resource.trim().is_empty() {
        return Err(Error::new("resource must not be empty"));
    }
    let resource = (**resource).into();
    check(Check::Resource(Box::new(ResourceCheck {
        asker: asker.clone(),
        group: group.clone(),
        resource,
        ..ResourceCheck::default()
    })))
}

fn with<'a>(args: &[Value<'a>], set: fn(&mut ResourceCheck, &str)) -> Found<'a> {
    let [Value::Object(it), Value::String(text)] = args else { return wrong() };
    let Object::Check(Check::Resource(before)) = &**it else { return wrong() };
    let mut after = before.clone();
    set(&mut after, text);
    check(Check::Resource(after))
}

fn ask<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    let [Value::Object(it), Value::String(verb)] = args else { return wrong() };
    let Object::Check(check @ (Check::Path { .. } | Check::Resource(_))) = &**it else { return wrong() };
    let authorizer = context.authorizer.ok_or_else(|| Error::new("no such attribute(s): authorizer"))?;
    Ok(Value::object(Object::Decision(authorizer.check(check, verb))))
}

fn decided<'a>(args: &[Value<'a>], of: fn(&crate::authorizer::CheckDecision) -> Value<'a>) -> Found<'a> {
    let [Value::Object(it)] = args else { return wrong() };
    match &**it {
        Object::Decision(it) => Ok(of(it)),
        _ => wrong(),
    }
}
