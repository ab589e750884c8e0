//! Reviews and token requests: questions about users, sent to the server as objects that are never stored.
//!
//! Answers: who am I, may I, may they, whose token is this; and it issues tokens of service accounts.
//! 1. A review is decided as the request itself would be: by the same credentials and the same roles.
//! 2. What comes back is what was sent, with a status; nothing is stored and no version is taken.
use actix_web::HttpResponse;
use serde_json::{Map, Value, json};

use super::ask::Ask;
use super::{auth, respond};
use crate::access::Authorization;
use crate::access::service_account::{self, ISSUER};
use crate::access::user::User;
use crate::cluster::metadata::timestamp;
use crate::cluster::prepare::check_shape;
use crate::cluster::rbac::{Decision, On, Rule, Wish};
use crate::cluster::status::{ApiError, Cause, Named};

/// The answer to a review; none for a kind that is not one.
pub(crate) fn answer(ask: &Ask) -> Option<Result<HttpResponse, ApiError>> {
    let act = match (&*ask.kind.resource.group, &*ask.kind.resource.plural) {
        ("authentication.k8s.io", "selfsubjectreviews") => who_am_i,
        ("authentication.k8s.io", "tokenreviews") => token,
        ("authorization.k8s.io", "selfsubjectaccessreviews") => may_i,
        ("authorization.k8s.io", "subjectaccessreviews") => may_they,
        ("authorization.k8s.io", "localsubjectaccessreviews") => may_they_here,
        ("authorization.k8s.io", "selfsubjectrulesreviews") => my_rules,
        ("", "serviceaccounts") if ask.target.sub.as_deref() == Some("token") => {
            return Some(service_account_token(ask));
        }
        _ => return None,
    };
    let review = ask.encoding().and_then(|encoding| Ok((encoding, act(ask, read(ask)?)?)));
    Some(review.map(|(encoding, review)| respond::value(201, encoding, &review)))
}

fn read(ask: &Ask) -> Result<Value, ApiError> {
    let mut body = ask.json()?;
    check_shape(&ask.kind, &mut body)?;
    // An empty member counts as missing.
    for attributes in ["/spec/resourceAttributes", "/spec/nonResourceAttributes"] {
        if let Some(attributes) = body.pointer_mut(attributes).and_then(Value::as_object_mut) {
            attributes.retain(|_, value| *value != json!(""));
        }
    }
    if *ask.kind.resource.plural != *"selfsubjectrulesreviews" {
        ask.world.with(|inner| inner.cluster.own_unstored(&ask.call(), &mut body));
    }
    body["apiVersion"] = json!(ask.kind.api_version());
    body["kind"] = json!(ask.kind.kind);
    Ok(body)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    let list = value.get(name).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn who_am_i(ask: &Ask, mut body: Value) -> Result<Value, ApiError> {
    body["metadata"]["creationTimestamp"] = json!(timestamp(ask.world.now()));
    body["status"] = json!({"userInfo": ask.user.to_value()});
    Ok(body)
}

fn invalid(causes: &[Cause]) -> ApiError {
    ApiError::invalid(Named { group: "authorization.k8s.io", kind: "", name: "" }, causes)
}

fn wrong(field: &str, value: &str, why: &str) -> Cause {
    let message = format!("Invalid value: {value}: {why}");
    Cause { reason: "FieldValueInvalid", message, field: field.to_owned() }
}

/// The action that an access review asks about.
fn wish(spec: &Value) -> Result<Wish<'_>, ApiError> {
    let given = |name| spec.get(name).filter(|attributes| attributes.is_object());
    match (given("resourceAttributes"), given("nonResourceAttributes")) {
        (Some(resource), None) => {
            let on = On::Resource {
                group: text(resource, "group"),
                plural: text(resource, "resource"),
                sub: text(resource, "subresource"),
                namespace: text(resource, "namespace"),
                name: text(resource, "name"),
            };
            Ok(Wish { verb: text(resource, "verb"), on })
        }
        (None, Some(path)) => Ok(Wish { verb: text(path, "verb"), on: On::Path(text(path, "path")) }),
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Err(invalid(&[wrong("spec.resourceAttributes", "null", why)]))
        }
        (Some(_), Some(path)) => {
            let value = format!("{{\"Path\":{:?},\"Verb\":{:?}}}", text(path, "path"), text(path, "verb"));
            let why = "cannot be specified in combination with resourceAttributes";
            Err(invalid(&[wrong("spec.nonResourceAttributes", &value, why)]))
        }
    }
}

fn decided(ask: &Ask, user: &User, mut body: Value) -> Result<Value, ApiError> {
    let Decision { allowed, reason } = {
        let spec = &body["spec"];
        auth::decide(&ask.world, user, &wish(spec)?)
    };
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    body["status"] = status;
    Ok(body)
}

fn may_i(ask: &Ask, body: Value) -> Result<Value, ApiError> {
    decided(ask, &ask.user, body)
}

fn may_they(ask: &Ask, body: Value) -> Result<Value, ApiError> {
    let spec = &body["spec"];
    wish(spec)?;
    let groups = texts(spec, "groups");
    if text(spec, "user").is_empty() && groups.is_empty() {
        return Err(invalid(&[wrong(
            "spec.user",
            "\"\"",
            "at least one of user or group must be specified",
        )]));
    }
    let user = groups.into_iter().fold(User::new(text(spec, "user")), User::group);
    decided(ask, &user, body)
}

fn may_they_here(ask: &Ask, mut body: Value) -> Result<Value, ApiError> {
    let home = ask.target.namespace.as_deref().unwrap_or_default();
    let asked = body["spec"]["resourceAttributes"]["namespace"].as_str().unwrap_or_default();
    if asked != home {
        let field = "spec.resourceAttributes.namespace";
        return Err(invalid(&[wrong(field, &format!("{asked:?}"), "must match metadata.namespace")]));
    }
    body["metadata"]["namespace"] = json!(home);
    may_they(ask, body)
}

fn my_rules(ask: &Ask, mut body: Value) -> Result<Value, ApiError> {
    let namespace = text(&body["spec"], "namespace").to_owned();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let rules = match ask.world.access.authorization {
        Authorization::Open => Rule::everything().to_vec(),
        Authorization::Rbac => ask.world.with(|inner| inner.cluster.policy()).rules(&ask.user, &namespace),
    };
    let (resources, paths): (Vec<&Rule>, Vec<&Rule>) =
        rules.iter().partition(|rule| rule.non_resource_urls.is_empty());
    body["spec"] = json!({});
    body["status"] = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    Ok(body)
}

fn token(ask: &Ask, mut body: Value) -> Result<Value, ApiError> {
    let given = text(&body["spec"], "token").to_owned();
    if given.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let mut wanted = texts(&body["spec"], "audiences");
    if wanted.is_empty() {
        wanted.push(ISSUER.to_owned());
    }
    body["status"] = match audiences(ask, &given) {
        None => json!({"user": {}, "error": "invalid bearer token"}),
        Some((user, known)) => {
            let common: Vec<&String> = known.iter().filter(|known| wanted.contains(known)).collect();
            if common.is_empty() {
                let error = format!(
                    "[invalid bearer token, token audiences {known:?} is invalid for the target audiences {wanted:?}]"
                );
                json!({"user": {}, "error": error})
            } else {
                json!({"authenticated": true, "user": user.to_value(), "audiences": common})
            }
        }
    };
    Ok(body)
}

/// The user of a token, and its audiences.
fn audiences(ask: &Ask, token: &str) -> Option<(User, Vec<String>)> {
    let (access, now) = (&ask.world.access, ask.world.now());
    if let Some(claims) = access.signer.check(token, now) {
        return auth::lives(&ask.world)(&claims).then(|| (claims.user().authenticated(), claims.aud));
    }
    let user = access.token_user(token, &auth::lives(&ask.world), now)?;
    Some((user, vec![ISSUER.to_owned()]))
}

/// How long a token may be asked for, in seconds.
const LIFETIMES: std::ops::RangeInclusive<i64> = 600..=1 << 32;

fn service_account_token(ask: &Ask) -> Result<HttpResponse, ApiError> {
    let (encoding, body) = (ask.encoding()?, ask.json()?);
    let spec = body.get("spec").cloned().unwrap_or_default();
    let seconds = spec.get("expirationSeconds").and_then(Value::as_i64).unwrap_or(3_600);
    if !LIFETIMES.contains(&seconds) {
        let why = if seconds < *LIFETIMES.start() {
            "may not specify a duration less than 10 minutes"
        } else {
            "may not specify a duration larger than 2^32 seconds"
        };
        let about = Named { group: "authentication.k8s.io", kind: "TokenRequest", name: "" };
        return Err(ApiError::invalid(about, &[wrong("spec.expirationSeconds", &seconds.to_string(), why)]));
    }
    let mut audiences = texts(&spec, "audiences");
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    let (namespace, name) = (text_of(&ask.target.namespace), text_of(&ask.target.name));
    let (account, pod, id) = ask.world.with(|inner| {
        let account = inner.cluster.get(&ask.kind, namespace, name)?;
        let pod = bound_pod(inner, namespace, &spec)?;
        Ok((account, pod, inner.rng.uid()))
    })?;
    let now = ask.world.now();
    let claims = service_account::Claims {
        aud: audiences.clone(),
        exp: now.saturating_add(seconds),
        iat: now,
        iss: ISSUER.to_owned(),
        jti: id,
        about: service_account::About {
            namespace: namespace.to_owned(),
            pod,
            serviceaccount: service_account::Reference {
                name: name.to_owned(),
                uid: account.uid.to_string(),
            },
        },
        nbf: now,
        sub: format!("system:serviceaccount:{namespace}:{name}"),
    };
    let token = ask.world.access.signer.sign(&claims);
    let token = token.ok_or_else(|| ApiError::untyped("the system has no random numbers"))?;
    let bound = spec.get("boundObjectRef").cloned().unwrap_or(Value::Null);
    Ok(respond::value(
        201,
        encoding,
        &json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "uid": &*account.uid, "creationTimestamp": timestamp(now)},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound},
            "status": {"token": token, "expirationTimestamp": timestamp(claims.exp)},
        }),
    ))
}

fn text_of(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// The pod that a token is bound to, if the request names one.
fn bound_pod(
    inner: &crate::world::Inner,
    namespace: &str,
    spec: &Value,
) -> Result<Option<service_account::Reference>, ApiError> {
    let empty = Map::new();
    let bound = spec.get("boundObjectRef").and_then(Value::as_object).unwrap_or(&empty);
    let member = |name: &str| bound.get(name).and_then(Value::as_str).unwrap_or_default();
    match member("kind") {
        "" => Ok(None),
        "Pod" => {
            let pods = inner.cluster.registry.find("", "v1", "pods").expect("the table has pods");
            let pod = inner.cluster.get(pods, namespace, member("name"))?;
            let uid = member("uid");
            if !uid.is_empty() && *uid != *pod.uid {
                let why = format!(
                    "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
                );
                return Err(ApiError::conflict(pods.named(member("name")), &why));
            }
            Ok(Some(service_account::Reference { name: pod.name.to_string(), uid: pod.uid.to_string() }))
        }
        other => Err(ApiError::bad_request(format!("cannot bind token to object of type {other}"))),
    }
}
