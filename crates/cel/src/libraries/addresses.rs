//! What is asked of addresses and networks.

use std::net::IpAddr;

use super::function::{Found, Plain, wrong};
use crate::error::Error;
use crate::objects::Object;
use crate::objects::address::{
    Cidr, cidr, contains, ip, is_global_unicast, is_link_local, is_link_local_multicast, masked, wrapped,
};
use crate::value::Value;

pub(super) fn find(name: &str) -> Option<Plain> {
    Some(match name {
        "ip" => |args, _| match args {
            [Value::String(text)] => ip(text).map(|it| Value::object(Object::Ip(it))),
            _ => wrong(),
        },
        "cidr.ip" => |args, _| match args {
            [Value::Object(it)] => match &**it {
                Object::Cidr(it) => Ok(Value::object(Object::Ip(it.addr))),
                _ => wrong(),
            },
            _ => wrong(),
        },
        "ip.isCanonical" => |args, _| match args {
            [Value::String(text)] => ip(text).map(|it| Value::Bool(it.to_string() == **text)),
            _ => wrong(),
        },
        "isIP" => |args, _| match args {
            [Value::String(text)] => Ok(Value::Bool(ip(text).is_ok())),
            _ => wrong(),
        },
        "cidr" => |args, _| match args {
            [Value::String(text)] => wrapped(text).map(|it| Value::object(Object::Cidr(it))),
            _ => wrong(),
        },
        "isCIDR" => |args, _| match args {
            [Value::String(text)] => Ok(Value::Bool(cidr(text).is_ok())),
            _ => wrong(),
        },
        "family" => |args, _| on_ip(args, |it| Value::Int(if it.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => |args, _| on_ip(args, |it| Value::Bool(it.is_unspecified())),
        "isLoopback" => |args, _| on_ip(args, |it| Value::Bool(it.is_loopback())),
        "isLinkLocalMulticast" => |args, _| on_ip(args, |it| Value::Bool(is_link_local_multicast(it))),
        "isLinkLocalUnicast" => |args, _| on_ip(args, |it| Value::Bool(is_link_local(it))),
        "isGlobalUnicast" => |args, _| on_ip(args, |it| Value::Bool(is_global_unicast(it))),
        "prefixLength" => |args, _| on_cidr(args, |it| Value::Int(i64::from(it.bits))),
        "masked" => |args, _| on_cidr(args, |it| Value::object(Object::Cidr(masked(it)))),
        "containsIP" => |args, _| contains_ip(args),
        "containsCIDR" => |args, _| contains_cidr(args),
        _ => return None,
    })
}

fn on_ip<'a>(args: &[Value<'a>], of: fn(&IpAddr) -> Value<'a>) -> Found<'a> {
    match args {
        [Value::Object(it)] => match &**it {
            Object::Ip(it) => Ok(of(it)),
            _ => wrong(),
        },
        _ => wrong(),
    }
}

fn on_cidr<'a>(args: &[Value<'a>], of: fn(&Cidr) -> Value<'a>) -> Found<'a> {
    match args {
        [Value::Object(it)] => match &**it {
            Object::Cidr(it) => Ok(of(it)),
            _ => wrong(),
        },
        _ => wrong(),
    }
}

fn contains_ip<'a>(args: &[Value<'a>]) -> Found<'a> {
    let [Value::Object(net), other] = args else { return wrong() };
    let Object::Cidr(net) = &**net else { return wrong() };
    let addr = match other {
        // Upstream takes the failure for an address.
        Value::String(text) => ip(text).map_err(|_| Error::no_such_overload())?,
        Value::Object(it) => match &**it {
            Object::Ip(it) => *it,
            _ => return wrong(),
        },
        _ => return wrong(),
    };
    Ok(Value::Bool(contains(net, &addr)))
}

fn contains_cidr<'a>(args: &[Value<'a>]) -> Found<'a> {
    let [Value::Object(net), other] = args else { return wrong() };
    let Object::Cidr(net) = &**net else { return wrong() };
    let other = match other {
        Value::String(text) => wrapped(text)?,
        Value::Object(it) => match &**it {
            Object::Cidr(it) => it.clone(),
            _ => return wrong(),
        },
        _ => return wrong(),
    };
    Ok(Value::Bool(net.bits <= other.bits && contains(net, &other.addr)))
}
