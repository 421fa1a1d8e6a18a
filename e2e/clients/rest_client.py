# SPDX-License-Identifier: Apache-2.0
"""A user of yarn-api-client: reads, submits an application and kills it."""
import sys
import time

from yarn_api_client.auth import SimpleAuth
from yarn_api_client.resource_manager import ResourceManager


def by_cookie(request):
    request.headers["Cookie"] = sys.argv[3]
    return request


auth = by_cookie if len(sys.argv) > 3 else SimpleAuth(sys.argv[2])
rm = ResourceManager([sys.argv[1]], timeout=30, auth=auth)

documents = [
    rm.cluster_information().data["clusterInfo"],
    rm.cluster_metrics().data["clusterMetrics"],
    rm.cluster_scheduler().data["scheduler"]["schedulerInfo"],
    rm.cluster_applications().data["apps"] or {"none": True},
    rm.cluster_application_statistics().data["appStatInfo"],
    rm.cluster_nodes().data["nodes"]["node"],
]
documents.append(rm.cluster_node(documents[-1][0]["id"]).data["node"])
new = rm.cluster_new_application().data
documents.append(new["maximum-resource-capability"])
assert all(documents), documents
print("read", len(documents), "documents")

app = new["application-id"]
rm.cluster_submit_application({
    "application-id": app,
    "application-name": "by rest",
    "application-type": "YARN",
    "unmanaged-AM": False,
    "max-app-attempts": 1,
    "resource": {"memory": 128, "vCores": 1},
    "am-container-spec": {"commands": {"command": "sleep 1000"}},
})


def await_state(*states):
    deadline = time.monotonic() + 120
    while True:
        state = rm.cluster_application_state(app).data["state"]
        if state in states:
            return state
        assert time.monotonic() < deadline, state
        time.sleep(0.1)


await_state("ACCEPTED", "RUNNING")
one = rm.cluster_application(app).data["app"]
assert one["id"] == app and one["name"] == "by rest" and one["user"] == sys.argv[2], one
attempts = rm.cluster_application_attempts(app).data["appAttempts"]["appAttempt"]
assert len(attempts) == 1, attempts
rm.cluster_application_kill(app)
await_state("KILLED")
assert rm.cluster_application(app).data["app"]["finalStatus"] == "KILLED"
print("killed", app)
