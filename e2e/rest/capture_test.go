package rest

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

func TestCapture(t *testing.T) {
	rm := hadoop.StartRM(t, hadoop.RM{})
	s := newSystem(t, "Hadoop", rm.Process, rm.Addresses)
	s.play()
	run := s.apps["running"].String()
	start := s.apps["starting"].String()
	att := strings.Replace(run, "application", "appattempt", 1) + "_000001"
	satt := strings.Replace(start, "application", "appattempt", 1) + "_000001"
	cont := strings.Replace(run, "application", "container", 1) + "_01_000001"
	base := "http://" + rm.Web
	const W = "/ws/v1/cluster"
	os.MkdirAll("/tmp/rest-capture", 0o755)
	get := func(name, method, path, accept, body string) {
		req, _ := http.NewRequest(method, base+path, strings.NewReader(body))
		if accept != "" {
			req.Header.Set("Accept", accept)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
			if body[0] == '<' {
				req.Header.Set("Content-Type", "application/xml")
			}
		}
		c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := c.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		out := method + " " + path + "\n" + res.Status + "\n"
		for k, v := range res.Header {
			out += k + ": " + strings.Join(v, ",") + "\n"
		}
		os.WriteFile("/tmp/rest-capture/"+name, []byte(out+"\n"+string(b)+"\n"), 0o644)
	}
	for name, path := range map[string]string{
		"info": "/info", "metrics": "/metrics", "scheduler": "/scheduler", "overview": "/scheduler-overview", "nodes": "/nodes", "node": "/nodes/127.0.0.2:1", "nonode": "/nodes/127.0.0.77:1", "badnode": "/nodes/xx",
		"userinfo": "/userinfo", "apps": "/apps", "app-running": "/apps/" + run, "app-starting": "/apps/" + start, "app-finished": "/apps/" + s.apps["finished"].String(),
		"app-killed": "/apps/" + s.apps["killed"].String(), "app-waiting": "/apps/" + s.apps["waiting"].String(), "appstat": "/appstatistics", "appstat2": "/appstatistics?states=running,finished&applicationTypes=TEST",
		"attempts": "/apps/" + run + "/appattempts", "attempts-starting": "/apps/" + start + "/appattempts", "attempt": "/apps/" + run + "/appattempts/" + att, "attempt-starting": "/apps/" + start + "/appattempts/" + satt,
		"attempts-finished": "/apps/" + s.apps["finished"].String() + "/appattempts",
		"containers":        "/apps/" + run + "/appattempts/" + att + "/containers", "containers-starting": "/apps/" + start + "/appattempts/" + satt + "/containers",
		"container": "/apps/" + run + "/appattempts/" + att + "/containers/" + cont, "nocontainer": "/apps/" + run + "/appattempts/" + att + "/containers/" + cont + "99",
		"badcontainer": "/apps/" + run + "/appattempts/" + att + "/containers/zz", "badattempt": "/apps/" + run + "/appattempts/zz", "noattempt": "/apps/" + run + "/appattempts/" + strings.TrimSuffix(att, "1") + "7",
		"state": "/apps/" + run + "/state", "state-killed": "/apps/" + s.apps["killed"].String() + "/state", "queue": "/apps/" + run + "/queue", "priority": "/apps/" + run + "/priority", "timeouts": "/apps/" + run + "/timeouts", "timeout": "/apps/" + run + "/timeouts/LIFETIME",
		"badtimeout": "/apps/" + run + "/timeouts/xx", "noapp": "/apps/application_1_0001", "badapp": "/apps/application_x", "badstates": "/apps?states=xx", "badlimit": "/apps?limit=0", "badlimit2": "/apps?limit=x", "badqueue": "/apps?queue=nope",
		"badbegin": "/apps?startedTimeBegin=-1", "badbegin2": "/apps?startedTimeBegin=x", "badrange": "/apps?startedTimeBegin=5&startedTimeEnd=2", "badrange2": "/apps?finishedTimeBegin=5&finishedTimeEnd=2", "badfinal": "/apps?finalStatus=xx", "baddeselect": "/apps?deSelects=xx", "badend": "/apps?finishedTimeEnd=-4",
		"apps-none": "/apps?user=nobody", "badnodestate": "/nodes?states=xx", "nodes-none": "/nodes?states=lost", "unknown": "/nope",
		"node2labels": "/get-node-to-labels", "labelmap": "/label-mappings", "nodelabels": "/get-node-labels", "rmnodelabels": "/get-rm-node-labels", "nodegetlabels": "/nodes/127.0.0.2:1/get-labels",
		"resvlist": "/reservation/list?queue=default", "schedconf": "/scheduler-conf", "schedconfversion": "/scheduler-conf/version", "schedconfformat": "/scheduler-conf/format",
		"activities": "/scheduler/activities", "activities-node": "/scheduler/activities?nodeId=127.0.0.2:1", "appactivities": "/scheduler/app-activities/" + run, "access": "/queues/default/access?user=bob", "access-noq": "/queues/nope/access?user=bob", "access-bad": "/queues/default/access?user=bob&queue-acl-type=xx",
		"access-nouser": "/queues/default/access",
		"badstat":       "/appstatistics?applicationTypes=a,b", "badstat2": "/appstatistics?states=xx",
	} {
		get(name+".json", "GET", W+path, "application/json", "")
		get(name+".xml", "GET", W+path, "application/xml", "")
	}
	get("app-text.txt", "GET", W+"/info", "text/plain", "")
	get("jmx-all.json", "GET", "/jmx", "", "")
	get("jmx-cm.json", "GET", "/jmx?qry=Hadoop:service=ResourceManager,name=ClusterMetrics", "", "")
	get("jmx-none.json", "GET", "/jmx?qry=foo:bar=*", "", "")
	get("jmx-bad.json", "GET", "/jmx?qry=foo", "", "")
	get("jmx-get.json", "GET", "/jmx?get=java.lang:type=Memory::HeapMemoryUsage", "", "")
	get("jmx-getbad.json", "GET", "/jmx?get=java.lang:type=Memory", "", "")
	get("conf.json", "GET", "/conf?format=json&name=yarn.resourcemanager.address", "", "")
	get("conf.xml", "GET", "/conf?format=xml&name=yarn.resourcemanager.address", "", "")
	get("conf-accept.json", "GET", "/conf?name=yarn.resourcemanager.address", "application/json", "")
	get("conf-none", "GET", "/conf?name=nope", "", "")
	get("conf-bad", "GET", "/conf?format=yaml", "", "")
	get("confall.json", "GET", "/conf?format=json", "", "")
	get("isactive", "GET", "/isActive", "", "")
	get("root", "GET", "/", "", "")
	get("cluster", "GET", "/cluster", "", "")
	get("proxy-run", "GET", "/proxy/"+run+"/", "", "")
	get("proxy-run-noslash", "GET", "/proxy/"+run, "", "")
	get("proxy-start", "GET", "/proxy/"+start+"/", "", "")
	get("proxy-finished", "GET", "/proxy/"+s.apps["finished"].String()+"/", "", "")
	get("proxy-killed", "GET", "/proxy/"+s.apps["killed"].String()+"/x/y?z=1", "", "")
	get("proxy-unknown", "GET", "/proxy/application_1_0001/", "", "")
	get("proxy-bad", "GET", "/proxy/foo/", "", "")
	get("proxy-redirect", "GET", "/proxy/redirect/"+run+"/", "", "")
	get("put-on-get", "PUT", W+"/info", "", "{}")
	get("post-scheduler", "POST", W+"/scheduler", "", "{}")
	get("kill-finished", "PUT", W+"/apps/"+s.apps["finished"].String()+"/state", "application/json", `{"state":"KILLED"}`)
	get("kill-bad", "PUT", W+"/apps/"+run+"/state", "application/json", `{"state":"RUN"}`)
	get("kill-empty", "PUT", W+"/apps/"+run+"/state", "application/json", `{}`)
	get("kill-malformed", "PUT", W+"/apps/"+run+"/state", "application/json", `{"state`)
	get("kill-nobody", "PUT", W+"/apps/"+run+"/state", "application/json", ``)
	get("prio", "PUT", W+"/apps/"+run+"/priority", "application/json", `{"priority":99}`)
	get("prio-fin", "PUT", W+"/apps/"+s.apps["finished"].String()+"/priority", "application/json", `{"priority":5}`)
	get("prio-xml", "PUT", W+"/apps/"+run+"/priority", "application/xml", `<applicationpriority><priority>4</priority></applicationpriority>`)
	get("queue-same", "PUT", W+"/apps/"+run+"/queue", "application/json", `{"queue":"root.default"}`)
	get("queue-bad", "PUT", W+"/apps/"+run+"/queue", "application/json", `{"queue":"nope"}`)
	get("queue-fin", "PUT", W+"/apps/"+s.apps["finished"].String()+"/queue", "application/json", `{"queue":"root.other"}`)
	get("queue-move", "PUT", W+"/apps/"+run+"/queue", "application/json", `{"queue":"other"}`)
	get("queue-xml", "PUT", W+"/apps/"+run+"/queue", "application/xml", `<appqueue><queue>default</queue></appqueue>`)
	get("timeout-ok", "PUT", W+"/apps/"+run+"/timeout", "application/json", `{"timeout":{"type":"LIFETIME","expiryTime":"2099-01-31T12:00:00.000+0000"}}`)
	get("timeout-past", "PUT", W+"/apps/"+run+"/timeout", "application/json", `{"timeout":{"type":"LIFETIME","expiryTime":"2001-01-31T12:00:00.000+0000"}}`)
	get("timeout-baddate", "PUT", W+"/apps/"+run+"/timeout", "application/json", `{"timeout":{"type":"LIFETIME","expiryTime":"x"}}`)
	get("timeout-notype", "PUT", W+"/apps/"+run+"/timeout", "application/json", `{"timeout":{"expiryTime":"2099-01-31T12:00:00.000+0000"}}`)
	get("timeout-noroot", "PUT", W+"/apps/"+run+"/timeout", "application/json", `{"type":"LIFETIME","expiryTime":"2099-01-31T12:00:00.000+0000"}`)
	get("timeout-badtype", "PUT", W+"/apps/"+run+"/timeout", "application/json", `{"timeout":{"type":"XX","expiryTime":"2099-01-31T12:00:00.000+0000"}}`)
	get("timeout-fin", "PUT", W+"/apps/"+s.apps["finished"].String()+"/timeout", "application/json", `{"timeout":{"type":"LIFETIME","expiryTime":"2099-01-31T12:00:00.000+0000"}}`)
	get("timeout-noapp", "PUT", W+"/apps/application_1_0001/timeout", "application/json", `{"timeout":{"type":"LIFETIME","expiryTime":"2099-01-31T12:00:00.000+0000"}}`)
	get("signal-bad", "POST", W+"/containers/"+cont+"/signal/xx", "application/json", "")
	get("signal-nocont", "POST", W+"/containers/"+cont+"99/signal/GRACEFUL_SHUTDOWN", "application/json", "")
	get("signal-badid", "POST", W+"/containers/zz/signal/GRACEFUL_SHUTDOWN", "application/json", "")
	get("signal", "POST", W+"/containers/"+cont+"/signal/output_thread_dump", "application/json", "")
	get("noderes", "POST", W+"/nodes/127.0.0.3:1/resource", "application/json", `{"resource":{"memory":4096,"vCores":4},"overCommitTimeout":-1}`)
	get("noderes-no", "POST", W+"/nodes/127.0.0.33:1/resource", "application/json", `{"resource":{"memory":4096,"vCores":4},"overCommitTimeout":-1}`)
	get("newapp.json", "POST", W+"/apps/new-application", "application/json", "")
	get("newapp.xml", "POST", W+"/apps/new-application", "application/xml", "")
	get("submit-bad", "POST", W+"/apps", "application/json", `{"application-id":"foo"}`)
	get("submit-none", "POST", W+"/apps", "application/json", `{}`)
	get("submit-big", "POST", W+"/apps", "application/json", `{"application-id":"application_1_0001","resource":{"memory":999999,"vCores":1}}`)
	get("submit-bigv", "POST", W+"/apps", "application/json", `{"application-id":"application_1_0001","resource":{"memory":128,"vCores":99}}`)
	get("submit-noqueue", "POST", W+"/apps", "application/json", `{"application-id":"application_1_0001","queue":"nope","resource":{"memory":128,"vCores":1},"am-container-spec":{"commands":{"command":"x"}}}`)
	get("submit-badtoken", "POST", W+"/apps", "application/json", `{"application-id":"application_1_0001","resource":{"memory":128,"vCores":1},"am-container-spec":{"credentials":{"tokens":{"entry":[{"key":"a","value":"!!"}]}},"commands":{"command":"x"}}}`)
	get("submit-badres", "POST", W+"/apps", "application/json", `{"application-id":"application_1_0001","resource":{"memory":128,"vCores":1},"am-container-spec":{"local-resources":{"entry":[{"key":"a","value":{"resource":"file:///x","type":"FILE","visibility":"PUBLIC","size":0,"timestamp":0}}]},"commands":{"command":"x"}}}`)
	get("submit-tags", "POST", W+"/apps", "application/json", `{"application-id":"application_1_0001","application-tags":{"tag":["a","b","c","d","e","f","g","h","i","j","k"]},"resource":{"memory":128,"vCores":1}}`)
	get("submit-ok", "POST", W+"/apps", "application/json", `{"application-id":"application_1_0007","application-name":"x","resource":{"memory":128,"vCores":1},"am-container-spec":{"commands":{"command":"x"}}}`)
	get("submit-text", "POST", W+"/apps", "application/json", `nonsense`)
	for name, p := range map[string]string{"resv-new": "/reservation/new-reservation", "resv-submit": "/reservation/submit", "resv-update": "/reservation/update", "resv-delete": "/reservation/delete", "dtoken": "/delegation-token", "dtoken-exp": "/delegation-token/expiration",
		"addlabels": "/add-node-labels", "removelabels": "/remove-node-labels?labels=x", "replabels": "/replace-node-to-labels", "nodereplabels": "/nodes/127.0.0.2:1/replace-labels?labels=x", "schedlogs": "/scheduler/logs", "schedvalidate": "/scheduler-conf/validate"} {
		get(name, "POST", W+p, "application/json", `{"renewer":"x","reservation-id":"reservation_1_1","queue":"default","nodeLabelInfo":[{"name":"x","exclusivity":true}]}`)
	}
	get("schedconf-put", "PUT", W+"/scheduler-conf", "application/json", `{"global-updates":{"entry":{"key":"a","value":"b"}}}`)
	get("kill", "PUT", W+"/apps/"+run+"/state", "application/json", `{"state":"KILLED"}`)
	get("kill2", "PUT", W+"/apps/"+run+"/state", "application/json", `{"state":"KILLED"}`)
	get("bulk", "GET", W+"/scheduler/bulk-activities?activitiesCount=xx", "application/json", "")
}
