//! FlowSchemas and PriorityLevelConfigurations (flowcontrol.apiserver.k8s.io/v1) as typed data.
//!
//! In: objects as an informer hands them over. Out: [`FlowSchema`], [`PriorityLevel`], defaults filled in, or
//! why one is broken. Never: which schema a request matches (`matching.rs`), what a share is in seats
//! (`shares.rs`).

use std::sync::Arc;

use serde_json::Value;

use crate::dealer::{Dealer, DealerError};
use crate::limits::QUEUES_MAX;

/// What the API server fills in where an object says nothing.
const PRECEDENCE_DEFAULT: i64 = 1_000;
const SHARES_DEFAULT: i64 = 30;
const QUEUES_DEFAULT: i64 = 64;
const HAND_DEFAULT: i64 = 8;
const QUEUE_LENGTH_DEFAULT: i64 = 50;

/// The level, and the schema, that are bound by no turns.
pub const EXEMPT: &str = "exempt";
/// The level, and the schema, for what nothing else matches.
pub const CATCH_ALL: &str = "catch-all";

/// Which requests are of which level, and which of them are one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSchema {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The name of its level.
    pub level: Arc<str>,
    /// Lower ones are asked first.
    pub precedence: i64,
    pub distinguisher: Distinguisher,
    pub rules: Vec<PolicyRules>,
}

/// What sets the flows of a schema apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinguisher {
    /// All of it is one flow.
    None,
    ByUser,
    ByNamespace,
}

/// A request matches if one of the subjects and one of the rules do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyRules {
    pub subjects: Vec<RuleSubject>,
    pub resources: Vec<ResourceRule>,
    pub paths: Vec<PathRule>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleSubject {
    User(String),
    Group(String),
    ServiceAccount { namespace: String, name: String },
}

/// What is asked of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub namespaces: Vec<String>,
    /// Whether it matches what has no namespace.
    pub cluster_scope: bool,
}

/// What is asked of other paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRule {
    pub verbs: Vec<String>,
    pub paths: Vec<String>,
}

/// A level: its share of the server, and what becomes of those who do not fit in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityLevel {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub shares: u64,
    /// How much of its nominal limit others may use.
    pub lendable_percent: u64,
    /// How much of its nominal limit it may use on top; none is no bound.
    pub borrowing_percent: Option<u64>,
    pub response: LimitResponse,
}

/// What becomes of a request beyond the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitResponse {
    /// There is no limit.
    Exempt,
    Reject,
    Queue {
        dealer: Dealer,
        queue_length_max: usize,
    },
}

/// Why an object is not used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    #[error("an object without a name")]
    Nameless,
    #[error("{name}: {field} is not what it has to be")]
    Field { name: String, field: &'static str },
    #[error("{name}: its type and its parts do not agree")]
    Union { name: String },
    #[error("{name}: only the level `exempt` is exempt, and it always is")]
    Exempt { name: String },
    #[error("{name}: its hand cannot be dealt")]
    Hand {
        name: String,
        #[source]
        cause: DealerError,
    },
}

impl FlowSchema {
    /// Reads an object.
    ///
    /// # Errors
    /// [`ConfigError`]; who hands objects over leaves this one out.
    pub fn read(object: &Value) -> Result<FlowSchema, ConfigError> {
        let reader = Reader::of(object)?;
        let spec = &object["spec"];
        let distinguisher = match spec["distinguisherMethod"]["type"].as_str() {
            None => Distinguisher::None,
            Some("ByUser") => Distinguisher::ByUser,
            Some("ByNamespace") => Distinguisher::ByNamespace,
            Some(_) => return Err(reader.wrong("spec.distinguisherMethod.type")),
        };
        let level = spec["priorityLevelConfiguration"]["name"].as_str();
        let level = level.filter(|name| !name.is_empty());
        let level = level.ok_or_else(|| reader.wrong("spec.priorityLevelConfiguration.name"))?;
        let rules = list(&spec["rules"]).map(|rule| reader.policy_rules(rule)).collect::<Result<_, _>>()?;
        Ok(FlowSchema {
            name: reader.name.as_str().into(),
            uid: reader.uid(),
            level: level.into(),
            precedence: reader.number(
                &spec["matchingPrecedence"],
                PRECEDENCE_DEFAULT,
                "spec.matchingPrecedence",
            )?,
            distinguisher,
            rules,
        })
    }
}

impl PriorityLevel {
    /// Reads an object.
    ///
    /// # Errors
    /// [`ConfigError`]; who hands objects over leaves this one out.
    pub fn read(object: &Value) -> Result<PriorityLevel, ConfigError> {
        let reader = Reader::of(object)?;
        let spec = &object["spec"];
        let (limited, exempt) = (&spec["limited"], &spec["exempt"]);
        let (is_limited, is_exempt) = match spec["type"].as_str() {
            Some("Limited") => (true, false),
            Some("Exempt") => (false, true),
            _ => return Err(reader.wrong("spec.type")),
        };
        let union = limited.is_object() == is_limited && exempt.is_object() == is_exempt;
        if !union {
            return Err(ConfigError::Union { name: reader.name });
        }
        if is_exempt != (reader.name == EXEMPT) {
            return Err(ConfigError::Exempt { name: reader.name });
        }
        let (part, shares_default) = if is_limited { (limited, SHARES_DEFAULT) } else { (exempt, 0) };
        let borrowing = &part["borrowingLimitPercent"];
        Ok(PriorityLevel {
            shares: reader.count(
                &part["nominalConcurrencyShares"],
                shares_default,
                "nominalConcurrencyShares",
            )?,
            lendable_percent: reader.count(&part["lendablePercent"], 0, "lendablePercent")?.min(100),
            borrowing_percent: match borrowing.is_null() {
                true => None,
                false => Some(reader.count(borrowing, 0, "borrowingLimitPercent")?),
            },
            response: match is_limited {
                true => reader.response(&limited["limitResponse"])?,
                false => LimitResponse::Exempt,
            },
            uid: reader.uid(),
            name: reader.name.into(),
        })
    }
}

/// Reads the parts of one object.
struct Reader<'a> {
    object: &'a Value,
    name: String,
}

impl<'a> Reader<'a> {
    fn of(object: &'a Value) -> Result<Reader<'a>, ConfigError> {
        let name = object["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        Ok(Reader { object, name: name.ok_or(ConfigError::Nameless)?.to_string() })
    }

    fn uid(&self) -> Arc<str> {
        self.object["metadata"]["uid"].as_str().unwrap_or_default().into()
    }

    fn wrong(&self, field: &'static str) -> ConfigError {
        ConfigError::Field { name: self.name.clone(), field }
    }

    fn number(&self, value: &Value, default: i64, field: &'static str) -> Result<i64, ConfigError> {
        match value {
            Value::Null => Ok(default),
            value => value.as_i64().ok_or_else(|| self.wrong(field)),
        }
    }

    fn count(&self, value: &Value, default: i64, field: &'static str) -> Result<u64, ConfigError> {
        let number = self.number(value, default, field)?;
        // What Kubernetes has for it is an int32.
        u32::try_from(number).map(u64::from).map_err(|_| self.wrong(field))
    }

    fn response(&self, response: &Value) -> Result<LimitResponse, ConfigError> {
        let queuing = &response["queuing"];
        match (response["type"].as_str(), queuing.is_object()) {
            (Some("Reject"), false) => Ok(LimitResponse::Reject),
            (Some("Queue"), true) => {
                let queues = self.count(&queuing["queues"], QUEUES_DEFAULT, "queues")?;
                let hand = self.count(&queuing["handSize"], HAND_DEFAULT, "handSize")?;
                let length =
                    self.count(&queuing["queueLengthLimit"], QUEUE_LENGTH_DEFAULT, "queueLengthLimit")?;
                if queues > QUEUES_MAX {
                    return Err(self.wrong("queues"));
                }
                let dealer = Dealer::new(queues, hand)
                    .map_err(|cause| ConfigError::Hand { name: self.name.clone(), cause })?;
                Ok(LimitResponse::Queue { dealer, queue_length_max: length as usize })
            }
            _ => Err(ConfigError::Union { name: self.name.clone() }),
        }
    }

    fn policy_rules(&self, rules: &Value) -> Result<PolicyRules, ConfigError> {
        Ok(PolicyRules {
            subjects: list(&rules["subjects"]).map(|it| self.subject(it)).collect::<Result<_, _>>()?,
            resources: list(&rules["resourceRules"]).map(resource_rule).collect(),
            paths: list(&rules["nonResourceRules"]).map(path_rule).collect(),
        })
    }

    fn subject(&self, subject: &Value) -> Result<RuleSubject, ConfigError> {
        let name = |part: &str, field: &str| subject[part][field].as_str().map(str::to_string);
        let read = match subject["kind"].as_str() {
            Some("User") => name("user", "name").map(RuleSubject::User),
            Some("Group") => name("group", "name").map(RuleSubject::Group),
            Some("ServiceAccount") => name("serviceAccount", "namespace")
                .zip(name("serviceAccount", "name"))
                .map(|(namespace, name)| RuleSubject::ServiceAccount { namespace, name }),
            _ => None,
        };
        read.ok_or_else(|| self.wrong("spec.rules.subjects"))
    }
}

fn resource_rule(rule: &Value) -> ResourceRule {
    ResourceRule {
        verbs: texts(&rule["verbs"]),
        groups: texts(&rule["apiGroups"]),
        resources: texts(&rule["resources"]),
        namespaces: texts(&rule["namespaces"]),
        cluster_scope: rule["clusterScope"].as_bool().unwrap_or_default(),
    }
}

fn path_rule(rule: &Value) -> PathRule {
    PathRule { verbs: texts(&rule["verbs"]), paths: texts(&rule["nonResourceURLs"]) }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).filter_map(|text| text.as_str()).map(str::to_string).collect()
}
