//! Whole informers against whole servers: the same scenarios on the in-memory API server and on a real control plane.
//!
//! Answers "does an informer show the true state of a cluster, whatever happens to it?" A scenario is one async
//! function that does not know which server it runs on; this file is the list of them. Invariants:
//! 1. A scenario ends with the store equal to the server's own list (key, uid, version), and with every subscriber's
//!    events replayed to the same; the recorder rejects any event that contradicts the ones before.
//! 2. Every write goes over HTTP, the same bytes to both servers.
//! 3. Disasters happen while a seeded random workload goes on; a failure names the seed.
//! 4. Without binaries the tests of the real control plane print that and pass, unless
//!    `INFORMER_REQUIRE_CONTROL_PLANE=1`.
//!
//! Read next: `stage.rs` (how a scenario is run), `server.rs` (two servers as one), `trial.rs` (what a disaster meets).

mod api;
mod followed;
mod kubectl;
mod relay;
mod replica;
mod selectors;
mod server;
mod stage;
mod trial;
mod workload;

mod access;
mod chaos;
mod children;
mod disasters;
mod discovery;
mod events;
mod factory;
mod leader;
mod left;
mod live;
mod many_namespaces;
mod measured;
mod namespaces;
mod network;
mod outages;
mod over_kube;
mod overlay;
#[cfg(feature = "protobuf")]
mod protobuf;
mod proxies;
mod rewind;
mod scale;
mod scope;
mod server_faults;
mod shedding;
#[path = "../../examples/small_operator.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod small_operator;
#[path = "../client/small_proxy.rs"]
mod small_proxy;
mod streaming;
mod streams;
mod subresources;
mod subscribers;
mod sync;
mod verbs;
mod waiting;
mod website;
mod website_killed;
#[path = "../../examples/website_operator/operator/mod.rs"]
mod website_operator;
mod website_parts;
mod website_process;
mod website_small;

/// One test for each scenario on an in-memory server of its own, and one for all of them on one control
/// plane, one after another or `at once`.
macro_rules! group {
    ($group:ident: $($file:ident::$scenario:ident),+ $(,)?) => {
        group! { $group on real: $($file::$scenario),+ }
    };
    ($group:ident on $real:ident: $($file:ident::$scenario:ident),+ $(,)?) => {
        mod $group {
            mod memory {
                $(#[test]
                fn $scenario() {
                    crate::stage::on_memory(&crate::stage::scenario!($file::$scenario));
                })+
            }

            #[test]
            fn real() {
                let server = crate::server::Server::$real();
                crate::stage::on_real(server, &[$(crate::stage::scenario!($file::$scenario)),+]);
            }
        }
    };
}

/// The same for scenarios that mostly wait and do not disturb their server: one test in memory too.
macro_rules! group_at_once {
    ($group:ident: $($file:ident::$scenario:ident),+ $(,)?) => {
        mod $group {
            #[test]
            fn memory() {
                crate::stage::at_once_on_memory(&[$(crate::stage::scenario!($file::$scenario)),+]);
            }

            #[test]
            fn real() {
                let server = crate::server::Server::real();
                crate::stage::at_once_on_real(server, &[$(crate::stage::scenario!($file::$scenario)),+]);
            }
        }
    };
}

group_at_once! { every_verb:
    verbs::objects_are_created_read_listed_and_deleted_by_type_by_resource_and_as_metadata,
    verbs::each_sort_of_patch_is_taken_by_type_by_resource_and_as_metadata,
    verbs::parameters_of_writes_do_what_they_say,
    verbs::a_refusal_says_which_field_is_wrong_and_which_kind_is_not_served,
    subresources::a_status_is_read_patched_and_replaced_without_the_rest_of_the_object,
    subresources::a_scale_is_read_patched_and_replaced_by_type_and_by_resource,
    subresources::pods_are_bound_debugged_and_evicted,
    subresources::a_token_is_issued_for_a_service_account,
    subresources::a_signing_request_is_approved,
    waiting::pages_follow_each_other_and_list_all_joins_them,
    waiting::dyn_14_a_watch_from_no_version_or_from_0_is_refused,
    waiting::dyn_15_an_informer_waits_for_a_state_a_deletion_an_error_and_its_limit,
    waiting::dyn_17_objects_are_read_one_by_one_with_pages_asked_for_ahead_and_an_error_stops_it,
    waiting::a_watch_brings_each_change_by_type_by_resource_and_as_metadata,
    waiting::an_entry_creates_changes_and_refuses_to_overwrite,
    waiting::writers_of_one_object_lose_nothing_when_conflicts_are_retried,
    waiting::until_waits_for_pods_deletions_definitions_and_conditions,
}

group_at_once! { parts_of_reconcilers:
    website_parts::opr_04_a_finalizer_is_added_and_removed_beside_others_and_after_conflicts,
    website_parts::opr_09_children_are_applied_left_alone_put_right_and_pruned,
    children::operator_a1_an_apply_succeeds_only_in_the_state_that_it_names,
    children::operator_a1_and_a6_managers_leave_each_other_alone_and_former_ones_are_moved_over,
    children::operator_a5_a_child_that_was_left_behind_stays_so_and_what_is_fixed_is_made_anew,
    left::operator_b_an_object_that_leaves_the_selector_is_cleaned_up_and_let_go,
}

group! { operators:
    measured::met_01_a_real_prometheus_scrapes_the_website_operator_and_dashboards_have_their_figures,
    website::opr_20_the_website_operator_does_its_work_with_the_rights_of_its_manifests,
    website_small::opr_21_a_child_that_is_deleted_the_moment_it_was_made_is_made_again_300_times,
    website_killed::opr_22_an_operator_that_is_killed_at_random_moments_loses_nothing_and_makes_nothing_twice,
}

group_at_once! { recorded_events:
    events::rec_01_and_rec_11_events_series_and_counts_are_kept_by_the_server_and_shown_by_kubectl,
    events::rec_07_and_rec_10_events_that_are_gone_are_created_anew_and_those_of_nodes_are_in_default,
    events::an_event_that_the_server_does_not_allow_is_counted_and_says_which_rule_is_missing,
}

group_at_once! { streams_of_pods:
    streams::str_01_a_log_is_read_and_followed_through_the_node_of_the_pod,
    streams::str_06_commands_run_through_the_node_of_the_pod,
    streams::str_13_ports_are_forwarded_through_the_node_of_the_pod,
}

group_at_once! { refused:
    selectors::inf_84_selectors_are_refused_before_any_request_exactly_if_the_server_cannot_parse_them,
    selectors::ref_63_a_field_that_the_server_does_not_know_is_a_state_that_quotes_the_selector,
    selectors::inf_84_of_every_kind_of_kubernetes_it_is_known_whether_it_is_in_namespaces,
}

group_at_once! { leading:
    leader::le_01_one_of_two_replicas_leads_and_the_other_takes_over_after_a_crash_and_after_a_shutdown,
    leader::le_15_a_leader_that_was_stopped_beyond_its_lease_begins_no_request_when_it_wakes,
    leader::le_15_a_leader_that_wakes_while_the_lease_is_free_leads_again_without_its_former_work,
    leader::a_leader_that_is_killed_is_followed_by_the_other_replica,
}

group! { discovered:
    discovery::each_name_of_each_resource_means_what_it_means_to_kubectl,
    discovery::the_resources_are_those_that_kubectl_lists_with_all_their_columns,
    discovery::dyn_10_of_an_ambiguous_short_name_kubectl_and_this_client_choose_and_warn_alike,
    discovery::a_category_means_the_resources_that_kubectl_gets,
    discovery::dyn_18_a_definition_is_found_by_one_refresh_and_followed_without_a_hand_written_resource,
    factory::fac_13_a_definition_comes_goes_and_comes_back_otherwise_under_load,
    discovery::kubectl_reads_the_cache_on_disk_that_this_client_has_written,
    discovery::this_client_reads_the_cache_on_disk_that_kubectl_has_written,
}

group! { coming_and_going:
    namespaces::inf_91_namespaces_come_and_go_under_load,
    namespaces::inf_94_of_two_clusters_one_is_killed_and_comes_back,
    many_namespaces::inf_92_hundreds_of_namespaces_are_as_many_watches_and_above_the_number_they_are_one,
}

group! { calm:
    sync::the_first_list_is_a_watch_list,
    sync::without_watch_lists_it_is_a_list_and_a_watch,
    live::every_change_is_delivered_one_by_one,
    live::another_object_of_the_same_name_is_a_deletion_and_an_addition,
    live::an_own_write_is_there_after_waiting_for_its_version,
    scope::two_namespaces_are_one_informer,
    scope::a_pod_that_leaves_the_selector_is_deleted,
    scope::metadata_and_dynamic_informers_see_the_same_pods,
    subscribers::a_late_subscriber_receives_the_present_state_first,
    subscribers::a_slow_subscriber_receives_the_newest_and_delays_nobody,
    subscribers::a_panicking_subscriber_misses_only_the_event_it_panicked_on,
    subscribers::a_resync_delivers_everything_again_and_changes_nothing,
    access::a_denied_informer_reports_it_and_recovers,
    access::ref_35_a_missing_kind_is_gone_until_it_is_defined,
    access::https_with_a_token_and_with_a_client_certificate,
}

group! { own_writes:
    overlay::idx_13_what_was_written_is_shown_at_once_and_the_watch_takes_it_over,
    overlay::idx_13_a_deletion_and_another_life_are_shown_at_once_and_the_watch_brings_none_back,
}

group! { through_proxies:
    proxies::rest_42_an_informer_follows_through_each_kind_of_proxy_and_through_broken_tunnels,
}

group! { over_kube_client:
    over_kube::an_informer_over_a_kube_client_follows_through_a_restart_of_the_server,
}

#[cfg(feature = "protobuf")]
group! { second_wire:
    protobuf::informers_over_protobuf_show_what_those_over_json_show,
}

group! { large:
    scale::ten_thousand_pods,
}

group! { disturbed:
    outages::an_expired_watch_is_listed_again_and_nothing_is_delivered_twice,
    outages::a_killed_server_is_found_again,
    outages::a_missed_deletion_is_found_by_the_relist,
}

group! { rewound:
    rewind::a_restored_backup_takes_the_store_back,
}

group! { server_failures:
    disasters::a_restarted_server,
    disasters::a_server_that_is_down_for_five_seconds,
    disasters::a_server_that_is_frozen_for_twenty_seconds,
    disasters::ref_36_an_older_copy_of_etcd,
}

group! { forgetful on real_without_watch_cache:
    disasters::versions_that_are_compacted_in_a_gap,
    disasters::versions_that_are_compacted_between_two_pages,
}

group_at_once! { cut_off:
    network::connections_refused_for_fifteen_seconds,
    network::ref_53_open_connections_that_fall_silent,
    network::a_wire_that_breaks_every_few_kilobytes,
    network::a_wire_of_twenty_kilobytes_a_second,
    network::objects_deleted_and_created_again_inside_a_gap,
    network::a_load_balancer_that_finds_no_server,
    network::an_overloaded_server_that_names_a_wait,
    network::wl_14_a_watch_list_that_stops_in_its_middle,
    network::one_network_fault_after_another,
}

/// What only the in-memory server can do.
mod memory {
    #[test]
    fn a_list_is_decoded_before_its_last_byte_and_published_after_it() {
        let scenario =
            crate::stage::scenario!(streaming::a_list_is_decoded_before_its_last_byte_and_published_after_it);
        crate::stage::on_memory(&scenario);
    }

    #[test]
    fn its_chaos() {
        crate::stage::at_once_on_memory(&[
            crate::stage::scenario!(chaos::one_fault_after_another),
            crate::stage::scenario!(chaos::one_fault_after_another),
            crate::stage::scenario!(chaos::one_fault_after_another),
        ]);
    }

    #[test]
    fn its_faults() {
        crate::stage::at_once_on_memory(&[
            crate::stage::scenario!(server_faults::wl_14_a_watch_list_that_never_ends),
            crate::stage::scenario!(server_faults::a_410_as_an_http_answer),
            crate::stage::scenario!(server_faults::windows_of_refusals_that_also_hit_the_workload),
        ]);
    }
}

/// What only a kube-apiserver can do.
mod real {
    #[test]
    fn it_chooses_leaders() {
        let server = crate::server::Server::real_that_chooses_leaders();
        let scenario = crate::stage::scenario!(leader::le_10_the_server_chooses_and_the_leader_hands_over);
        crate::stage::on_real(server, &[scenario]);
    }

    #[test]
    fn it_sheds_load() {
        let server = crate::server::Server::real_of_one_request();
        crate::stage::on_real(server, &[crate::stage::scenario!(shedding::a_server_that_is_overloaded)]);
    }

    #[test]
    fn its_permissions() {
        let denied = crate::stage::scenario!(many_namespaces::inf_92_forbidden_to_watch_all_it_follows_each);
        crate::stage::on_real(crate::server::Server::real(), &[denied]);
    }
}
