//! Rows on objects of built-in kinds: long lists of what has to differ, and long everything.

mod affinity;
mod certificate_usages;
mod config_map_keys;
mod deep_field_sets;
mod device_selectors;
mod device_types;
mod endpoint_addresses;
mod event_of_three_mib;
mod field_path;
mod finalizers;
mod host_aliases;
mod init_containers;
mod labels;
mod limit_range;
mod long_names;
mod managed_fields;
mod managers_of_an_update;
mod mounts;
mod owners;
mod quantities;
mod role_rules;
mod role_subjects;
mod scheduling_gates;
mod secret_of_three_mib;
mod service_ports;
mod status_conditions;
mod taints;
mod tolerations;
mod volumes;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    affinity,
    certificate_usages,
    config_map_keys,
    deep_field_sets,
    device_selectors,
    device_types,
    endpoint_addresses,
    event_of_three_mib,
    field_path,
    finalizers,
    host_aliases,
    init_containers,
    labels,
    limit_range,
    long_names,
    managed_fields,
    managers_of_an_update,
    mounts,
    owners,
    quantities,
    role_rules,
    role_subjects,
    scheduling_gates,
    secret_of_three_mib,
    service_ports,
    status_conditions,
    taints,
    tolerations,
    volumes,
];
