//! `pods/eviction`: a deletion that asks the disruption budgets first.
//!
//! Answers: may this pod be disrupted now? It uses the counters in the budgets' status; nothing computes them here.
//! 1. A pod that is finished or being deleted is deleted without a check; so is one that no budget selects.
//! 2. A granted eviction takes one from the budget, marks the pod as DisruptionTarget, then deletes it.
use std::sync::Arc;

use serde_json::{Value, json};

use super::super::call::Call;
use super::super::delete::DeleteOptions;
use super::super::list::scope_of;
use super::super::metadata::{condition_holds, member, timestamp};
use super::super::object::Object;
use super::super::propagation::Propagation;
use super::super::selector;
use super::super::selector::Selector;
use super::super::status::ApiError;
use super::super::store::Cluster;
use super::{Expected, put_at, set_condition};

const EVICTION: Expected<'_> = Expected { kind: "Eviction", api_version: "policy/v1", package: "policy" };
/// How long a client should wait for a budget without a computed status, in seconds.
const UNSEEN_BUDGET_WAIT: u32 = 10;

impl Cluster {
    /// Evicts a pod.
    ///
    /// # Errors
    /// 400 for a body about another pod, 404, 429 where a budget forbids it, and those of a deletion.
    pub(crate) fn evict(&mut self, call: &Call<'_>, body: &Value) -> Result<(), ApiError> {
        EVICTION.check(body)?;
        if member(body, "name") != call.name {
            return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
        }
        let options = body.get("deleteOptions").unwrap_or(&Value::Null);
        let propagation = Propagation::read(options, &Vec::new())?;
        let options = DeleteOptions { propagation, ..DeleteOptions::parse(options) };
        let old = self.get(call.kind, call.namespace, call.name)?;
        let mut pod = old.decode();
        if !is_disturbed_freely(&pod) {
            self.ask_budgets(call, &old, &pod)?;
        }
        if call.dry_run {
            return Ok(());
        }
        if member(&pod, "deletionTimestamp").is_empty() {
            let target = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting"});
            set_condition(&mut pod, call.now, target);
            let key = call.kind.key(call.namespace, call.name);
            self.commit(call.kind, &key, Some(pod));
        }
        self.delete(call, &options).map(|_| ())
    }

    fn ask_budgets(&mut self, call: &Call<'_>, pod: &Object, value: &Value) -> Result<(), ApiError> {
        let budgets = self.budgets_over(call.namespace, pod);
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [budget] => budget,
            _ => {
                let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(ApiError::internal(message));
            }
        };
        let mut status = budget.decode();
        let number = |at: &str| status.pointer(at).and_then(Value::as_i64).unwrap_or(0);
        let (healthy, desired) = (number("/status/currentHealthy"), number("/status/desiredHealthy"));
        let always = status.pointer("/spec/unhealthyPodEvictionPolicy") == Some(&json!("AlwaysAllow"));
        if !condition_holds(value, "Ready") && (always || (healthy >= desired && desired > 0)) {
            return Ok(());
        }
        if number("/status/observedGeneration") < number("/metadata/generation") {
            let why =
                format!("The disruption budget {} is still being processed by the server.", budget.name);
            return Err(ApiError::over_budget(&why).with_retry_after(UNSEEN_BUDGET_WAIT));
        }
        let left = number("/status/disruptionsAllowed");
        if left <= 0 {
            let why = format!(
                "The disruption budget {} needs {desired} healthy pods and has {healthy} currently",
                budget.name
            );
            return Err(ApiError::over_budget(&why));
        }
        put_at(&mut status, "/status/disruptionsAllowed", json!(left - 1));
        let mut disrupted = status.pointer("/status/disruptedPods").cloned().unwrap_or_else(|| json!({}));
        disrupted[call.name] = json!(timestamp(call.now));
        put_at(&mut status, "/status/disruptedPods", disrupted);
        if let (false, Some(kind)) = (call.dry_run, self.budget_kind()) {
            let key = kind.key(call.namespace, &budget.name);
            self.commit(&kind, &key, Some(status));
        }
        Ok(())
    }

    fn budget_kind(&self) -> Option<Arc<super::super::kind::Kind>> {
        self.registry.find("policy", "v1", "poddisruptionbudgets").cloned()
    }

    fn budgets_over(&self, namespace: &str, pod: &Object) -> Vec<Arc<Object>> {
        let Some(kind) = self.budget_kind() else { return Vec::new() };
        let scope = scope_of(&kind, Some(namespace), &Selector::default());
        let Some(table) = self.table(&kind.storage) else { return Vec::new() };
        let chosen = |object: &&Arc<Object>| {
            selector::chooses(object.decode().pointer("/spec/selector"), &|name| pod.label(name))
        };
        table.objects.range(scope.range(None)).map(|(_, object)| object).filter(chosen).cloned().collect()
    }
}

/// Whether the end of this pod disrupts nothing: it is finished, has not started, or is being deleted
/// already.
fn is_disturbed_freely(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || !member(pod, "deletionTimestamp").is_empty()
}
