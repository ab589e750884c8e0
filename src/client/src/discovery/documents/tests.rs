//! Discovery documents of both forms, as servers send them and as they do not.

use super::*;

const AGGREGATED: &str = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
  {"metadata":{"name":"apps","creationTimestamp":null},"versions":[
    {"version":"v1","freshness":"Current","resources":[
      {"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced",
       "singularResource":"deployment","verbs":["get","list","watch"],"shortNames":["deploy"],"categories":["all"],
       "subresources":[
         {"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get"]},
         {"subresource":"status","responseKind":{"group":"","version":"","kind":"Deployment"},"verbs":["get","patch"]}]},
      {"resource":"only-below","responseKind":null,"scope":"Cluster","verbs":null,"subresources":null}]},
    {"version":"v1beta2","freshness":"Stale","resources":null}]},
  {"metadata":{"name":"empty"},"versions":null}]}"#;

fn aggregated(body: &str) -> (Vec<DiscoveredGroup>, Vec<FailedGroupVersion>) {
    match root(body.as_bytes()).unwrap() {
        Root::Aggregated(groups, failed) => (groups, failed),
        Root::Legacy(_) => panic!("it is aggregated"),
    }
}

fn shown(groups: &[DiscoveredGroup]) -> String {
    format!("{groups:#?}")
}

#[test]
fn an_aggregated_document_gives_groups_resources_names_and_subresources_and_names_what_is_stale() {
    for version in ["v2", "v2beta1"] {
        let (groups, failed) = aggregated(
            &AGGREGATED.replace("apidiscovery.k8s.io/v2", &format!("apidiscovery.k8s.io/{version}")),
        );
        assert_eq!(groups.len(), 2);
        assert_eq!((groups[0].preferred.as_deref(), groups[0].versions.len()), (Some("v1"), 1));
        let deployments = &groups[0].versions[0].resources[..];
        assert_eq!(deployments.len(), 1, "what has no kind is left out");
        let deployments = &deployments[0];
        assert_eq!(
            (deployments.full_name().as_str(), deployments.api.api_version.as_str()),
            ("deployments.v1.apps", "apps/v1")
        );
        assert!(deployments.is_namespaced() && deployments.can_be_watched());
        let below: Vec<_> = deployments
            .capabilities
            .subresources
            .iter()
            .map(|(api, _)| (&*api.plural, &*api.api_version))
            .collect();
        assert_eq!(below, [("scale", "autoscaling/v1"), ("status", "apps/v1")]);
        assert_eq!(failed[0].to_string(), "apps/v1beta2 (stale: its server does not answer)");
    }
}

#[test]
fn the_old_form_of_a_model_gives_the_same_model_again() {
    let (groups, _) = aggregated(AGGREGATED);
    let mut again = legacy::groups(&legacy::written_groups(&groups)).unwrap();
    for (group, written) in again.iter_mut().zip(&groups) {
        for (version, written) in group.versions.iter_mut().zip(&written.versions) {
            let list = legacy::written_resources(&group.name, written);
            version.resources = legacy::resources(&list, (&group.name, &version.name)).unwrap();
        }
    }
    assert_eq!(shown(&again), shown(&groups));
}

#[test]
fn the_old_documents_are_understood_with_null_for_empty_lists_and_without_singular_names() {
    let Root::Legacy(core) = root(br#"{"kind":"APIVersions","versions":["v1"]}"#).unwrap() else { panic!() };
    assert_eq!((core[0].name.as_str(), core[0].preferred.as_deref()), ("", Some("v1")));
    let body = br#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],
        "preferredVersion":null}]}"#;
    let Root::Legacy(groups) = root(body).unwrap() else { panic!() };
    assert_eq!((groups[0].preferred.clone(), groups[0].versions[0].name.as_str()), (None, "v1"));
    let list = br#"{"kind":"APIResourceList","groupVersion":"v1","resources":[
        {"name":"pods","singularName":"","namespaced":true,"kind":"Pod","verbs":null,"shortNames":null},
        {"name":"pods/log","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]},
        {"name":"ghosts/log","kind":"Pod"}, {"name":"","kind":"Pod"}, {"name":"kindless"}]}"#;
    let resources = legacy::resources(list, ("", "v1")).unwrap();
    assert_eq!(resources.len(), 1);
    assert_eq!((resources[0].singular.as_str(), resources[0].capabilities.subresources.len()), ("pod", 1));
    assert!(legacy::resources(br#"{"resources":null}"#, ("", "v1")).unwrap().is_empty());
}

#[test]
fn what_is_no_discovery_document_is_an_error_that_quotes_no_value() {
    let secret = r#"{"kind":"APIGroupDiscoveryList","items":"hunter2"}"#;
    for (body, expected) in [
        ("", "EOF while parsing a value"),
        ("<html>", "expected value"),
        ("{}", "another kind"),
        (r#"{"kind":"Status"}"#, "another kind"),
        (secret, "string"),
    ] {
        let error = root(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("hunter2"), "{body}: {error}");
    }
    assert_eq!(root(&vec![b' '; DOCUMENT_LIMIT + 1]).unwrap_err(), DocumentError::TooLarge);
    assert_eq!(legacy::resources(br#"{"kind":"Status"}"#, ("", "v1")).unwrap_err(), DocumentError::Kind);
}
