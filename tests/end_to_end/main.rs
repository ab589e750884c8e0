//! Whole informers against whole servers: the same scenarios on the in-memory API server and on a real control plane.
//!
//! Answers "does an informer tell the truth about a cluster, whatever happens to it?" A scenario is one async function
//! that knows no server by name; this file is the list of them. Invariants:
//! 1. A scenario ends with the store equal to the server's own list (key, uid, version), and with every subscriber's
//!    events replayed to the same; the recorder objects to any event that contradicts the ones before.
//! 2. Every write goes over HTTP, the same bytes to both servers.
//! 3. Disasters happen while a seeded random workload goes on; a failure names the seed.
//! 4. Without binaries the real half says so and passes, unless `INFORMER_REQUIRE_CONTROL_PLANE=1`.
//!
//! Read next: `stage.rs` (how a scenario is run), `server.rs` (two servers as one), `trial.rs` (what a disaster meets).

mod api;
mod followed;
mod relay;
mod server;
mod stage;
mod trial;
mod workload;

mod access;
mod chaos;
mod disasters;
mod live;
mod network;
mod outages;
mod rewind;
mod scale;
mod scope;
mod server_faults;
mod shedding;
mod streaming;
mod subscribers;
mod sync;

/// One test for each scenario on an in-memory server of its own, and one for all of them on one control plane, in turn
/// or `at once`.
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

/// The same for scenarios that mostly wait and leave their server alone: one test in memory too.
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

group! { calm:
    sync::the_first_list_is_a_watch_list,
    sync::without_watch_lists_it_is_a_list_and_a_watch,
    live::what_happens_is_told_one_by_one,
    live::another_life_of_a_name_is_a_deletion_and_an_addition,
    live::ones_own_write_is_there_after_waiting_for_its_version,
    scope::two_namespaces_are_one_informer,
    scope::a_pod_that_leaves_the_selector_is_deleted,
    scope::metadata_and_dynamic_informers_see_the_same_pods,
    subscribers::a_late_subscriber_is_told_the_present_first,
    subscribers::a_slow_subscriber_is_told_the_newest_and_delays_nobody,
    subscribers::a_panicking_subscriber_misses_only_what_it_panicked_on,
    subscribers::a_resync_tells_everything_again_and_changes_nothing,
    access::a_denied_informer_says_so_and_recovers,
    access::a_missing_kind_is_gone_until_it_is_defined,
    access::https_with_a_token_and_with_a_client_certificate,
}

group! { large:
    scale::ten_thousand_pods,
}

group! { disturbed:
    outages::an_expired_watch_is_listed_again_and_nothing_is_told_twice,
    outages::a_killed_server_is_found_again,
    outages::a_missed_deletion_is_found_by_the_relist,
}

group! { rewound:
    rewind::a_restored_backup_takes_the_store_back,
}

group! { struck:
    disasters::a_restarted_server,
    disasters::a_server_that_is_dead_for_five_seconds,
    disasters::a_server_that_is_frozen_for_twenty_seconds,
    disasters::ref_36_an_older_copy_of_etcd,
}

group! { forgetful on real_without_watch_cache:
    disasters::a_past_that_is_forgotten_in_a_gap,
    disasters::a_past_that_is_forgotten_between_two_pages,
}

group_at_once! { cut_off:
    network::connections_refused_for_fifteen_seconds,
    network::ref_53_open_connections_that_fall_silent,
    network::a_wire_that_breaks_every_few_kilobytes,
    network::a_wire_of_twenty_kilobytes_a_second,
    network::lives_that_end_and_begin_inside_a_gap,
    network::a_load_balancer_that_finds_no_server,
    network::an_overloaded_server_that_names_a_wait,
    network::wl_14_a_watch_list_that_stops_in_its_middle,
    network::one_misfortune_after_another,
}

/// What only the in-memory server can be made to do.
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
            crate::stage::scenario!(server_faults::a_version_that_is_gone_as_an_answer),
            crate::stage::scenario!(server_faults::windows_of_refusals_that_the_workload_meets_too),
        ]);
    }
}

/// What only a kube-apiserver can be made to do.
mod real {
    #[test]
    fn it_sheds_load() {
        let server = crate::server::Server::real_of_one_request();
        crate::stage::on_real(server, &[crate::stage::scenario!(shedding::a_server_that_is_crowded)]);
    }
}
