# SPDX-License-Identifier: Apache-2.0
"""A user of yarn-api-client who reads every document and changes what can be
changed. Arguments: address, user, application, attempt, container, node."""
import sys

from yarn_api_client.auth import SimpleAuth
from yarn_api_client.errors import APIError
from yarn_api_client.resource_manager import ResourceManager

address, user, app, attempt, container, node = sys.argv[1:]
rm = ResourceManager([address], timeout=60, auth=SimpleAuth(user))
read = []


def get(name, call, *path):
    data = call().data
    for step in path:
        data = data[step]
    assert data is not None, name
    read.append(name)
    return data


get("information", rm.cluster_information, "clusterInfo", "resourceManagerVersion")
get("metrics", rm.cluster_metrics, "clusterMetrics", "totalMB")
get("scheduler", rm.cluster_scheduler, "scheduler", "schedulerInfo", "queues", "queue")
apps = get("applications", lambda: rm.cluster_applications(states=["RUNNING", "ACCEPTED"], limit=10), "apps", "app")
assert app in [a["id"] for a in apps], apps
get("statistics", lambda: rm.cluster_application_statistics(states=["RUNNING"], application_types=["TEST"]), "appStatInfo", "statItem")
assert get("application", lambda: rm.cluster_application(app), "app", "id") == app
assert get("attempts", lambda: rm.cluster_application_attempts(app), "appAttempts", "appAttempt")[0]["appAttemptId"] == attempt
assert get("attempt", lambda: rm.cluster_application_attempt_info(app, attempt), "appAttemptId") == attempt
assert len(get("containers", lambda: rm.cluster_application_attempt_containers(app, attempt), "container")) == 3
assert get("container", lambda: rm.cluster_application_attempt_container_info(app, attempt, container), "containerId") == container
assert get("state", lambda: rm.cluster_application_state(app), "state") == "RUNNING"
assert len(get("nodes", lambda: rm.cluster_nodes(states=["RUNNING"]), "nodes", "node")) == 2
assert get("node", lambda: rm.cluster_node(node), "node", "id") == node
assert get("queue", lambda: rm.cluster_get_application_queue(app), "queue") == "root.default"
get("priority", lambda: rm.cluster_get_application_priority(app), "priority")
assert get("timeouts", lambda: rm.cluster_application_timeouts(app), "timeouts", "timeout")[0]["type"] == "LIFETIME"
get("timeout", lambda: rm.cluster_application_timeout(app, "LIFETIME"), "timeout", "expiryTime")
get("new application", rm.cluster_new_application, "maximum-resource-capability", "memory")
get("activities", rm.scheduler_activities, "activities", "diagnostic")
get("application activities", lambda: rm.application_activities(app), "appActivities", "diagnostic")
queue = rm.cluster_scheduler_queue("default")
assert queue["queueName"] == "default", queue
partition = rm.cluster_queue_partition(queue, "")
assert partition["absoluteCapacity"] == 70, partition
assert rm.cluster_scheduler_queue_availability(partition, 90)
read += ["queue of the scheduler", "partition of a queue"]

rm.cluster_change_application_priority(app, 5)
assert rm.cluster_get_application_priority(app).data["priority"] == 5
rm.cluster_change_application_queue(app, "other")
assert rm.cluster_get_application_queue(app).data["queue"] == "root.other"
rm.cluster_update_application_timeout(app, "LIFETIME", "2099-01-31T12:00:00.000+0000")
rm.cluster_container_signal(container, "OUTPUT_THREAD_DUMP")
rm.cluster_node_update_resource(node, {"resource": {"memory": 6144, "vCores": 6}, "overCommitTimeout": -1})
assert rm.cluster_node(node).data["node"]["totalResource"]["memory"] == 6144

off = 0
for call in (rm.cluster_new_reservation, rm.cluster_reservations, rm.cluster_scheduler_conf_mutation,
             lambda: rm.cluster_new_delegation_token(user), lambda: rm.cluster_application("application_1_0001")):
    try:
        call()
    except APIError:
        off += 1
assert off == 5, off

rm.cluster_application_kill(app)
print("read", len(read), "documents, changed 6 things")
