//! The API's verbs over HTTP: from a resource's path to the registry and back.
//!
//! In: a request about a resource that is served. Out: a response, or a failure. Knows which method, media
//! type and options belong to which verb; never what a verb does.

use std::sync::Arc;

use bytes::Bytes;
use forebay_api::{Answer, Body, Outcome, PatchKind, Read};
use forebay_apimachinery::accept::{ContentType, unsupported_media_type};
use forebay_apimachinery::options::{
    CreateOptions, GetOptions, ListOptions, PatchOptions, UpdateOptions, manager_or_user_agent,
};
use forebay_apimachinery::{Lease, Status, Verb};
use forebay_catalog::{Converted, RequestContext, Served, Target};
use forebay_object::Object;
use forebay_pieces::{MadeFor, Zipped};
use forebay_reads::{
    As, Begun, Encoding, EventForm, FORMATS, Freshness, Making, Presenter, Shown, Weight, freshness,
};
use forebay_transport::websocket;
use http::StatusCode;
use http::header;
use hyper::body::Incoming;

use crate::answer::{self, HttpResponse};
use crate::authz;
use crate::body_in::{self, Forms, Leased};
use crate::component_statuses;
use crate::delete_options::delete_options;
use crate::flow_control::{self, Ticket};
use crate::flows;
use crate::framing::Framing;
use crate::handler::{Handler, Head};
use crate::limits::{DELETE_COLLECTION_BYTES, GZIP_BYTES_MIN, OFFLOAD_BYTES};
use crate::list_answer;
use crate::negotiate::{self, Answered, Form};
use crate::noted_list;
use crate::offload;
use crate::proxied;
use crate::request_info::segment_fault;
use crate::response::{Content, ResponseBody};
use crate::reviews;
use crate::shown::{shown, shown_as};
use crate::status::{self, Failure};
use crate::warnings;
use crate::watch_body::WatchStream;

/// Answers a request about `served`.
///
/// # Errors
/// Whatever is wrong with it, as kube-apiserver says it.
pub async fn answer(
    handler: &Handler,
    head: &Head,
    served: Arc<Served>,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let target = target(head, served)?;
    if target.is_connection() {
        return Box::pin(proxied::connected(handler, head, &target, body)).await;
    }
    if target.served.is("", "componentstatuses") {
        return component_statuses::answer(handler, head, &target);
    }
    match head.info.verb {
        Verb::Get => get(handler, head, &target).await,
        Verb::List => list(handler, head, &target).await,
        Verb::Watch => watch(handler, head, &target).await,
        Verb::Create => create(handler, head, &target, body).await,
        Verb::Update => update(handler, head, &target, body).await,
        Verb::Patch => patch(handler, head, &target, body).await,
        Verb::Delete => delete(handler, head, &target, body).await,
        Verb::DeleteCollection => delete_collection(handler, head, &target, body).await,
        _ => Err(Failure::no_such_method()),
    }
}

/// What the path names, if there is such a thing and it has the verb.
fn target(head: &Head, served: Arc<Served>) -> Result<Target, Failure> {
    let info = &head.info;
    if info.path_form {
        is_watch_path(head, &served)?;
    }
    // A namespace's own path names it twice.
    let is_namespace = served.is("", "namespaces");
    let namespace = (!is_namespace && !info.namespace.is_empty()).then(|| info.namespace.clone());
    let name = info.named_in_path.then(|| info.name.clone());
    let is_elsewhere = is_namespace && !info.namespace.is_empty() && info.namespace != info.name;
    if is_elsewhere || namespace.is_some() && !served.namespaced {
        return Err(Failure::no_such_resource());
    }
    let subresource = (!info.subresource.is_empty()).then(|| info.subresource.clone());
    let is_collection = matches!(info.verb, Verb::List | Verb::Watch);
    if served.namespaced && namespace.is_none() && !is_collection {
        // Objects and writes have a namespace; a POST to all namespaces has no route.
        let is_post = info.verb == Verb::Create && name.is_none() || info.verb == Verb::DeleteCollection;
        return Err(if is_post { Failure::no_such_method() } else { Failure::no_such_resource() });
    }
    // What is only made has no objects to name.
    let has_objects = served.verbs.iter().any(|verb| *verb != "create");
    if name.is_some() && subresource.is_none() && !has_objects {
        return Err(Failure::no_such_resource());
    }
    if let Some(fault) = name.as_deref().and_then(segment_fault) {
        let name = info.name.as_str();
        return Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {fault}")).into());
    }
    let verbs = match &subresource {
        None => Some(&served.verbs),
        Some(asked) => {
            let known =
                served.subresource(asked).ok_or_else(|| Failure::no_such_part(&served, &info.name))?;
            // What is behind it says what may be asked for, by any method and path.
            (!known.connect || &*known.name != "proxy").then_some(&known.verbs)
        }
    };
    if let Some(verbs) = verbs {
        has_verb(head, &served, verbs, name.is_some() || subresource.is_some())?;
    }
    Ok(Target {
        served,
        namespace,
        name,
        subresource,
        caller: Some(head.asker.caller()),
        lease: Lease::of_server(),
        context: RequestContext::default(),
    })
}

/// Whether what is asked for can be done there.
///
/// - `is_named`: whether the path is one of an object, or of a part of one.
fn has_verb(head: &Head, served: &Served, verbs: &[&str], is_named: bool) -> Result<(), Failure> {
    let info = &head.info;
    if !info.rest.is_empty() {
        return Err(Failure::no_such_resource());
    }
    if head.method == http::Method::HEAD || !verbs.contains(&info.verb.as_str()) {
        return Err(match served.is_custom() {
            false => Failure::no_such_method(),
            true => served.method_not_supported(info.verb.as_str()).into(),
        });
    }
    let wants_name = matches!(info.verb, Verb::Get | Verb::Update | Verb::Patch | Verb::Delete);
    if info.subresource.is_empty() && info.verb != Verb::Watch && wants_name != is_named {
        return Err(Failure::no_such_method());
    }
    Ok(())
}

/// Whether there is such a path of the deprecated `/watch/` form: it is for collections and single objects.
fn is_watch_path(head: &Head, served: &Served) -> Result<(), Failure> {
    let info = &head.info;
    let nowhere = info.named_in_path && served.namespaced && info.namespace.is_empty();
    if !served.verbs.contains(&"watch") || nowhere || !info.subresource.is_empty() {
        return Err(Failure::no_such_resource());
    }
    if head.method != http::Method::GET {
        return Err(Failure::no_such_method());
    }
    Ok(())
}

async fn get(handler: &Handler, head: &Head, target: &Target) -> Result<HttpResponse, Failure> {
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::Object)?;
    let options = GetOptions::from_query(&head.query);
    // A Scale is shown as it is.
    let is_scale = target.subresource.as_deref() == Some("scale");
    let shown = if is_scale { As::Object.into() } else { shown(form, &head.query)? };
    let cached = || target.cached().map_or(0, |object| object.body_len());
    handler.begin(head, || flow_control::object(cached())).await?;
    let fresh = freshness(&options.resource_version)?;
    let found = match &target.served.converted {
        // Boxed, because most have none of it.
        Some(converted) => Box::pin(get_converted(handler, head, (target, converted), fresh)).await?,
        None => handler.api.get(target, fresh).wait().await?,
    };
    let object = match found {
        Read::Other(json) => {
            head.answers(&json);
            return answer::object(status::OK, json, form, head.takes_gzip());
        }
        Read::Object(object) => object,
    };
    let lease = handler.admit_object(head, &object, form).await?;
    let mut json = Vec::with_capacity(object.body_len() + 128);
    Presenter::new(target.served.clone(), shown).single(&object, handler.timestamp(), &mut json);
    let json = Bytes::from(json);
    if head.wants_answer() {
        head.answers(&as_json(&object, target, shown, handler, &json));
    }
    answer::written(status::OK, json, form, head.takes_gzip(), lease).await
}

/// An object that a webhook may have to convert. What that takes is charged to the request before it is held
/// and given back once the object is made, which is charged as an answer is. Who waits for the webhook has no
/// turn.
async fn get_converted(
    handler: &Handler,
    head: &Head,
    (target, converted): (&Target, &Converted),
    fresh: Freshness,
) -> Result<Read, Failure> {
    let bytes = target.cached().map_or(0, |object| converted.bytes_to_ask(&object));
    let lease = handler.rooms.lease_of_read(head.asker.name(), bytes).await?;
    let target = Target { lease: lease.clone(), context: head.context(), ..target.clone() };
    let found = handler.api.get(&target, fresh).wait().await;
    found.map_err(|status| body_in::blamed(status.into(), &lease, &handler.rooms))
}

/// The object as it is answered, whichever form it is in.
fn as_json(object: &Object, target: &Target, shown: Shown, handler: &Handler, made: &Bytes) -> Bytes {
    if shown.encoding == Encoding::Json {
        return made.clone();
    }
    let mut json = Vec::with_capacity(object.body_len() + 128);
    let shown = Shown { encoding: Encoding::Json, ..shown };
    Presenter::new(target.served.clone(), shown).single(object, handler.timestamp(), &mut json);
    json.into()
}

async fn list(handler: &Handler, head: &Head, target: &Target) -> Result<HttpResponse, Failure> {
    let began = forebay_rt::used_cpu();
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::List)?;
    let options = ListOptions::from_query(&head.query)?;
    let shown = shown(form, &head.query)?;
    let planned = handler.api.list(target, &options, shown)?;
    let (weight, takes_gzip) = (planned.weight(), head.takes_gzip());
    let rendering = flow_control::rendering(form, takes_gzip);
    let (mut cost, foreseen, meter) = handler.list_cost(&target.served, weight, rendering);
    // What was made of the same for somebody else is sent, unless it is written to meanwhile.
    let is_there = planned
        .sought()
        .is_some_and(|it| handler.shared_lists.has(&it, (form, takes_gzip)) && it.is_of_now());
    if is_there {
        cost.price.cpu = foreseen.sent;
    }
    if head.wants_answer() {
        // The copy that is noted is there until its reader has the answer.
        cost.price.bytes += noted_list::foreseen(weight, shown.what).unwrap_or(0) as u64;
    }
    meter.since(began);
    handler.begin(head, || cost).await?;
    head.usage.iter().for_each(|usage| usage.lists(flows::listed_at(&planned)));
    let lease = handler.admit_read(head, weight, rendering.making == Making::Stored).await?;
    let planned = match head.wants_answer() {
        true => Box::pin(handler.note_list(head, target, (options, shown), planned)).await?,
        false => planned,
    };
    let waits = || head.flow.ticket().iter().for_each(|ticket| ticket.waits());
    // Boxed, because other verbs have none of it.
    let begun = Box::pin(meter.during(planned.run_among_equals(lease, foreseen.made, waits)));
    let Begun { body, lease } = begun.await?;
    let warnings = body.warnings();
    let readers = ((&handler.stalled_readers, &head.channel), &handler.shared_lists);
    let answer = list_answer::list(body, (form, takes_gzip), readers, (weight, meter));
    let (mut response, made_for) = answer.await?;
    let came_to = if made_for == MadeFor::Another { foreseen.sent } else { foreseen.made };
    if came_to != cost.price.cpu {
        head.came_to(came_to);
    }
    add_warnings(&mut response, &warnings);
    response.body_mut().set_lease(lease);
    Ok(response)
}

async fn watch(handler: &Handler, head: &Head, target: &Target) -> Result<HttpResponse, Failure> {
    let form = negotiate::stream(&head.headers, &target.served, FORMATS)?;
    let options = ListOptions::from_query(&head.query)?;
    let what = shown_as(form.as_kind, &head.query)?;
    let shown = EventForm { what, meta: form.meta, drops: form.drops, format: form.format };
    let planned = handler.api.watch(target, &options, shown, head.info.path_form)?;
    let rendering = flow_control::rendering_of_events(form);
    // Before there is a snapshot to be held: the wait for a turn, and for memory, may be long.
    let state = planned.has_state().then(|| planned.weight());
    handler.begin(head, || flow_control::watch(state, rendering, head.channel.is_connection())).await?;
    let is_as_stored = rendering.making == Making::Stored;
    let lease = handler.admit_read(head, planned.weight(), is_as_stored).await?;
    let Begun { body, lease } = Box::pin(planned.run(lease, status::write)).await?;
    head.usage.iter().for_each(|usage| usage.watches(state.is_some()));
    let ticket = head.flow.ticket();
    let starting = match state {
        Some(_) => ticket.map(Ticket::starting),
        // It goes on from where it was: nothing is sent before something happens.
        None => {
            ticket.iter().for_each(|ticket| ticket.answered());
            None
        }
    };
    let events = handler.metrics.watch_events(&target.served, &head.info, head.usage.clone());
    // Nothing but a connection of HTTP/1.1 can be upgraded.
    let is_asked = websocket::is_asked(&head.headers) && head.channel.is_connection();
    let upgraded = is_asked.then(|| websocket::answer(&head.headers));
    let session = body.session();
    let framing = match upgraded {
        Some(_) => Framing::WebSocket(form.format),
        None if session.is_watch_list() && head.takes_gzip() && session.state_bytes() >= GZIP_BYTES_MIN => {
            let blocks = session.has_segments().then(|| handler.event_blocks.reader(&target.served));
            Framing::Gzip(Box::new(Zipped::new(blocks)))
        }
        None => Framing::Http,
    };
    let is_zipped = matches!(framing, Framing::Gzip(_));
    // Over HTTP/1.1 its client would come back on the same connection.
    let going = (!head.channel.is_connection()).then_some(&head.going);
    let stream = WatchStream::new(
        body,
        (handler.drain.watch(going), lease, starting),
        events,
        framing,
        (&handler.stalled_readers, head.channel.clone()),
        handler.clock.clone(),
    );
    let content = Content::Watch(stream);
    if let Some(mut answer) = upgraded {
        if answer.status() == status::UPGRADED {
            *answer.body_mut() = ResponseBody::new(content);
        }
        return Ok(answer);
    }
    let response = answer::response(status::OK, form.format.content_type, ResponseBody::new(content));
    Ok(if is_zipped { answer::zipped(response) } else { response })
}

async fn create(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::Object)?;
    let options = CreateOptions::from_query(&head.query)?;
    let review = reviews::of(target);
    if review.is_none() && handler.memory.is_exhausted() {
        return Err(handler.no_memory_for_more());
    }
    let (leased, object) = object_body(handler, head, target, body).await?;
    let answer = match review {
        Some(review) => {
            let (api, completes) = (handler.api.clone(), reviews::completes(handler, review));
            let work = |target: Target| async move {
                api.review(&target, &object, &options, completes).wait().await
            };
            let incoming = on_lease(handler, head, target, leased, work).await?;
            reviews::answer(handler, head, target, review, incoming).await?
        }
        None => {
            let api = handler.api.clone();
            let work = |target: Target| async move { api.create(&target, &object, &options).wait().await };
            on_lease(handler, head, target, leased, work).await?
        }
    };
    written(handler, head, target, form, answer).await
}

async fn update(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::Object)?;
    let options = UpdateOptions::from_query(&head.query)?;
    let (leased, object) = object_body(handler, head, target, body).await?;
    let may_create = Some(handler.may_create(head));
    let api = handler.api.clone();
    let work =
        |target: Target| async move { api.update(&target, &object, &options, may_create).wait().await };
    let answer = on_lease(handler, head, target, leased, work).await?;
    written(handler, head, target, form, answer).await
}

/// What `work` says of a request whose body was `leased`: done apart where the body, or the tree of the
/// object that it is about, is large. It holds what it was leased until it is over, whoever still waits for
/// it.
///
/// # Errors
/// What `work` says, or that the request takes more than it may.
async fn on_lease<T, F>(
    handler: &Handler,
    head: &Head,
    target: &Target,
    leased: Leased,
    work: impl FnOnce(Target) -> F,
) -> Result<T, Failure>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Status>> + Send + 'static,
{
    let Leased { bytes: _, lease, work: bytes } = leased;
    // What YAML became, and a message, is charged already.
    let bytes = target.served.work(bytes.max(lease.used()));
    let context = RequestContext { program: program(head), ..head.context() };
    let target = Target { lease: lease.clone(), context, ..target.clone() };
    // Boxed: the verbs' own futures are large, and a request that waits for its body would have their places
    // already.
    let work = Box::pin(work(target));
    let done = offload::task(bytes, work).await?;
    done.map_err(|status| body_in::blamed(status.into(), &lease, &handler.rooms))
}

/// What a patch may be, in the order that messages list it.
const PATCH_TYPES: [ContentType; 4] = [
    ContentType::JsonPatch,
    ContentType::MergePatch,
    ContentType::StrategicMergePatch,
    ContentType::ApplyYaml,
];
/// The same of a custom resource, which has no merge keys.
const CUSTOM_PATCH_TYPES: [ContentType; 3] =
    [ContentType::JsonPatch, ContentType::MergePatch, ContentType::ApplyYaml];

async fn patch(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let is_custom = target.served.is_custom();
    let taken = if is_custom { &CUSTOM_PATCH_TYPES[..] } else { &PATCH_TYPES[..] };
    let content_type = ContentType::parse(body_in::content_type(&head.headers));
    let content_type = content_type.filter(|content_type| taken.contains(content_type));
    let content_type = content_type.ok_or_else(|| unsupported_media_type(taken))?;
    let kind = match content_type {
        ContentType::JsonPatch => PatchKind::Json,
        ContentType::MergePatch => PatchKind::Merge,
        ContentType::ApplyYaml => return apply(handler, head, target, body).await,
        _ => PatchKind::StrategicMerge,
    };
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::Object)?;
    let options = PatchOptions::from_query(&head.query, content_type)?;
    let mut leased = leased_body(handler, head, target, content_type, body).await?;
    // Its name may be written in escapes.
    let may_copy = || memchr::memmem::find(&leased.bytes, b"copy").is_some() || leased.bytes.contains(&b'\\');
    if kind == PatchKind::Json && may_copy() {
        // However short it is, what it copies may be as long as a tree may be.
        leased.work = leased.work.max(OFFLOAD_BYTES);
    }
    let (bytes, sent) = (leased.bytes.clone(), head.sent());
    let api = handler.api.clone();
    let work = |target: Target| async move {
        sent.note(&bytes, &target.lease)?;
        api.patch(&target, kind, &bytes, &options).wait().await
    };
    let answer = on_lease(handler, head, target, leased, work).await?;
    written(handler, head, target, form, answer).await
}

/// A server-side apply.
async fn apply(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::Object)?;
    let options = PatchOptions::from_query(&head.query, ContentType::ApplyYaml)?;
    let leased = leased_body(handler, head, target, ContentType::Yaml, body).await?;
    let config = body_in::configuration(&leased).await;
    let config = config.map_err(|failure| body_in::blamed(failure, &leased.lease, &handler.rooms))?;
    let (may_create, sent) = (Some(handler.may_create(head)), head.sent());
    let api = handler.api.clone();
    let work = |target: Target| async move {
        if let Body::Json(json) | Body::Yaml { json, .. } = &config {
            sent.note(json, &target.lease)?;
        }
        api.apply(&target, &config, &options, may_create).wait().await
    };
    let answer = on_lease(handler, head, target, leased, work).await?;
    written(handler, head, target, form, answer).await
}

/// What who writes is called: as the request says, or as its program does.
fn program(head: &Head) -> String {
    let agent = head.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    manager_or_user_agent("", agent.unwrap_or_default())
}

async fn delete(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::Object)?;
    let cost = |body_bytes| flow_control::write(body_bytes, target.watchers());
    let (options, lease) = delete_options(handler, head, body, cost).await?;
    if options.ignores_read_errors() {
        authz::may_delete_unread(&handler.access, &head.asker.caller(), &head.info).await?;
    }
    let target = &Target { lease: lease.clone(), context: head.context(), ..target.clone() };
    let answered = handler.api.delete(target, &options).wait().await;
    let answered = answered.map_err(|status| body_in::blamed(status.into(), &lease, &handler.rooms))?;
    written(handler, head, target, form, answered).await
}

async fn delete_collection(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<HttpResponse, Failure> {
    let form = negotiate::object(&head.headers, &head.query, &target.served, Answered::List)?;
    let selection = ListOptions::from_query(&head.query)?;
    // A resourceVersion in the query says which list is meant, and each object's precondition as well:
    // kube-apiserver reads it for both.
    let planned = handler.api.plan_deletion(target, &selection);
    let weight = planned.as_ref().map_or(Weight::default(), |planned| planned.weight);
    let watchers = target.watchers();
    let cost = |body_bytes| flow_control::delete_collection(body_bytes, weight, watchers);
    let (options, lease) = delete_options(handler, head, body, cost).await?;
    let mut planned = planned?;
    planned.shown = Shown { encoding: Encoding::Json, ..shown(form, &head.query)? };
    let room = handler.rooms.lists.take(head.asker.name(), DELETE_COLLECTION_BYTES).await;
    let _held = room.map_err(|_full| handler.rooms.full())?;
    let target = &Target { lease: lease.clone(), context: head.context(), ..target.clone() };
    let deleted = handler.api.delete_collection(target, planned, &options).wait().await;
    let deleted = deleted.map_err(|status| body_in::blamed(status.into(), &lease, &handler.rooms))?;
    if let Some(ticket) = head.flow.ticket() {
        head.came_to(flow_control::deleted(ticket.foreseen(), weight, watchers, deleted.objects));
    }
    let answered = deleted.answer;
    finish(handler, head, form, status::OK, &answered.warnings, status::shown_of(answered.outcome)).await
}

/// A body within its limits, and a lease for what it becomes.
async fn leased_body(
    handler: &Handler,
    head: &Head,
    target: &Target,
    content_type: ContentType,
    body: Incoming,
) -> Result<Leased, Failure> {
    let user = head.asker.name();
    let cost = |body_bytes| flow_control::write(body_bytes, target.watchers());
    let received = handler.receive(head, body, cost).await?;
    received.leased(&handler.rooms, user, Some(content_type), handler.bytes_to_change(target)).await
}

/// The object that is written, and the lease for what is made of it.
async fn object_body(
    handler: &Handler,
    head: &Head,
    target: &Target,
    body: Incoming,
) -> Result<(Leased, Body), Failure> {
    let forms = match target.served.is_custom() {
        false => Forms::TextAndProtobuf,
        true => Forms::Text,
    };
    let content_type = body_in::object_type(&head.headers, forms)?;
    let leased = leased_body(handler, head, target, content_type, body).await?;
    match body_in::object(&leased, content_type, target.served.gvk.kind.clone()).await {
        Ok(object) => Ok((leased, object)),
        Err(failure) => Err(body_in::blamed(failure, &leased.lease, &handler.rooms)),
    }
}

/// The answer to a write.
async fn written(
    handler: &Handler,
    head: &Head,
    target: &Target,
    form: Form,
    answer: Answer,
) -> Result<HttpResponse, Failure> {
    let code = status::of_outcome(&answer.outcome);
    let is_status = matches!(answer.outcome, Outcome::Success(_));
    let is_itself = !is_status && target.subresource.as_deref().is_none_or(|name| name == "status");
    let mut json = status::shown_of(answer.outcome);
    let shown = shown(form, &head.query)?;
    if is_itself && shown.what != As::Object {
        let presenter = Presenter::new(target.served.clone(), shown);
        json = presenter.written(&json, handler.timestamp())?.into();
    }
    finish(handler, head, form, code, &answer.warnings, json).await
}

async fn finish(
    handler: &Handler,
    head: &Head,
    form: Form,
    code: StatusCode,
    warnings: &[String],
    json: Bytes,
) -> Result<HttpResponse, Failure> {
    head.answers(&json);
    let mut response = answer::of_write(code, json, form, head.takes_gzip(), &handler.rooms).await?;
    add_warnings(&mut response, warnings);
    Ok(response)
}

pub fn add_warnings(response: &mut HttpResponse, given: &[String]) {
    for value in warnings::headers(given) {
        response.headers_mut().append(header::WARNING, value);
    }
}
