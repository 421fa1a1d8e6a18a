# SPDX-License-Identifier: Apache-2.0
"""A user of Skein: services that grow and shrink, whose containers talk to their AM."""
import sys
import time
import urllib.request

import skein

web, python, packages = sys.argv[1:4]
login = {}
headers = {}
if len(sys.argv) > 4:
    login["principal"], login["keytab"], headers["Cookie"] = sys.argv[4:]

word = """import os, skein
skein.ApplicationClient.from_current().kv[os.environ["CONTAINER_ID"]] = b"said"
"""


def until(what, true):
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


with skein.Client(log="driver.log", **login) as client:
    assert len(client.get_nodes()) >= 2, client.get_nodes()
    queues = {q.name for q in client.get_all_queues()}
    assert "default" in queues, queues

    spec = skein.ApplicationSpec(
        name="words",
        queue="default",
        tags={"by-skein"},
        master=skein.Master(resources=skein.Resources(memory="384 MiB", vcores=1)),
        services={
            # Each says its word to the AM and goes on.
            "words": skein.Service(
                resources=skein.Resources(memory="128 MiB", vcores=1),
                instances=2,
                max_restarts=-1,  # as a member may die meanwhile
                env={"PYTHONPATH": packages},
                script=python + " -c '" + word + "' && sleep 1000",
            ),
            # Begins when the others have.
            "after": skein.Service(
                resources=skein.Resources(memory="128 MiB", vcores=1),
                depends={"words"},
                script="sleep 1000",
            ),
        },
    )
    app = client.submit_and_connect(spec)
    print(app.id)

    def running(service):
        return [c for c in app.get_containers(services=[service]) if c.state == "RUNNING"]

    until("both services run", lambda: len(running("words")) == 2 and len(running("after")) == 1)
    app.scale("words", 4)
    until("four run", lambda: len(running("words")) == 4)
    until("four have said their word", lambda: len(app.kv) >= 4)

    # One is killed, and another says its word in its place.
    said = len(app.kv)
    app.kill_container(running("words")[0].id)
    until("three run", lambda: len(running("words")) == 3)
    app.scale("words", 4)
    until("another has said its word", lambda: len(app.kv) > said and len(running("words")) == 4)
    app.scale("words", 1)
    until("one is left", lambda: len(running("words")) == 1)

    app.set_progress(0.5)
    until("its progress is told", lambda: client.application_report(app.id).progress == 0.5)
    report = client.application_report(app.id)
    told = report.name, set(report.tags), report.queue.removeprefix("root.")
    assert told == ("words", {"by-skein"}, "default"), told
    assert app.id in {a.id for a in client.get_applications(states=["RUNNING"], name="words")}

    # Its page, by the web proxy of the cluster.
    address = "http://%s/proxy/%s/overview?user.name=%s" % (web, app.id, report.user)
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as page:
        text = page.read().decode()
    assert "words" in text and "after" in text, text

    app.shutdown("SUCCEEDED", "enough was said")
    until("its end", lambda: client.application_report(app.id).state == "FINISHED")
    report = client.application_report(app.id)
    told = str(report.final_status), report.diagnostics
    assert told[0] == "SUCCEEDED" and "enough was said" in told[1], told

    # Another is ended from outside.
    gone = client.submit(spec)
    until("the other runs", lambda: client.application_report(gone).state == "RUNNING")
    client.kill_application(gone)
    until("its end", lambda: client.application_report(gone).state == "KILLED")
print("all is well")
