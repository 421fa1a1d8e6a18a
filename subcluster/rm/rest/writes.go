// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// refuseWrite writes what went wrong with a change: YARN says that one may not
// in a plain sentence, and everything else as a RemoteException.
func (o *Door) refuseWrite(w http.ResponseWriter, r *http.Request, what string, id creel.ApplicationID, err error) {
	var e *refusal
	if errors.Is(err, creel.ErrNotPermitted) && !errors.As(err, &e) {
		o.text(
			w,
			r,
			http.StatusForbidden,
			fmt.Sprintf("Unauthorized attempt to %s appid %s by remote user %s", what, id, o.caller(r).User),
		)
		return
	}
	if !errors.As(err, &e) {
		err = &refusal{http.StatusServiceUnavailable, classYarn, err.Error()} // a YarnException, whatever its kind
	}
	o.refuse(w, r, err)
}

// stateReply tells the state as the ResourceManager has it inside, KILLING and
// FINAL_SAVING among them: those who poll this door wait for the last one.
func (o *Door) stateReply(w http.ResponseWriter, r *http.Request, status int, a *rm.AppView) {
	o.reply(w, r, status, "appstate", mapped, func(w *writer) { w.Text("state", a.Internal) })
}

func (o *Door) state(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.stateReply(w, r, http.StatusOK, &s.app)
}

// setState kills: 202 while the end is under way, 200 when it is final.
func (o *Door) setState(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	var doc struct {
		State       string `json:"state" xml:"state"`
		Diagnostics string `json:"diagnostics" xml:"diagnostics"`
	}
	if err := o.decode(w, r, &doc); err != nil {
		o.refuse(w, r, err)
		return
	}
	if doc.State == s.app.Internal {
		o.stateReply(w, r, http.StatusOK, &s.app)
		return
	}
	if doc.State != creel.AppKilled.String() {
		o.refuse(w, r, badRequest(cause+"Only 'KILLED' is allowed as a target state."))
		return
	}
	if s.app.State.Ended() {
		o.stateReply(w, r, http.StatusOK, &s.app)
		return
	}
	done, err := o.d.KillApplication(r.Context(), o.caller(r), s.app.ID, doc.Diagnostics)
	if err != nil {
		o.refuseWrite(w, r, "kill", s.app.ID, err)
		return
	}
	after, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if !done && !after.app.State.Ended() {
		status = http.StatusAccepted
		w.Header().Set("Location", "http://"+r.Host+r.URL.Path)
	}
	o.stateReply(w, r, status, &after.app)
}

func (o *Door) queueReply(w http.ResponseWriter, r *http.Request, q creel.QueuePath) {
	o.reply(w, r, http.StatusOK, "appqueue", natural, func(w *writer) { w.Text("queue", string(q)) })
}

func (o *Door) queue(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.queueReply(w, r, s.app.Queue)
}

// setQueue moves an application.
func (o *Door) setQueue(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	var doc struct {
		Queue string `json:"queue" xml:"queue"`
	}
	if err := o.decode(w, r, &doc); err != nil {
		o.refuse(w, r, err)
		return
	}
	switch {
	case doc.Queue == string(s.app.Queue):
		o.queueReply(w, r, s.app.Queue)
		return
	case s.app.State.Ended():
		o.text(w, r, http.StatusBadRequest, "App in "+s.app.State.String()+" state cannot be moved.")
		return
	}
	if err := o.d.MoveApplication(r.Context(), o.caller(r), s.app.ID, doc.Queue); err != nil {
		o.refuseWrite(w, r, "move", s.app.ID, err)
		return
	}
	if s, _, err = o.view(r); err != nil {
		o.refuse(w, r, err)
		return
	}
	o.queueReply(w, r, s.app.Queue)
}

func (o *Door) priorityReply(w http.ResponseWriter, r *http.Request, p int32) {
	o.reply(w, r, http.StatusOK, "applicationpriority", natural, func(w *writer) { w.Int("priority", int64(p)) })
}

func (o *Door) priority(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.priorityReply(w, r, s.app.Priority)
}

func (o *Door) setPriority(w http.ResponseWriter, r *http.Request) {
	s, _, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	var doc struct {
		Priority *number `json:"priority" xml:"priority"`
	}
	if err := o.decode(w, r, &doc); err != nil {
		o.refuse(w, r, err)
		return
	}
	if doc.Priority == nil {
		o.refuse(w, r, badRequest(cause+"Priority value is null; give {\"priority\": n}"))
		return
	}
	p := s.app.Priority
	if !s.app.State.Ended() {
		if p, err = o.d.SetApplicationPriority(
			r.Context(),
			o.caller(r),
			s.app.ID,
			int32(min(max(*doc.Priority, -1<<31), 1<<31-1)),
		); err != nil {
			o.refuseWrite(w, r, "change priority of", s.app.ID, err)
			return
		}
	}
	o.priorityReply(w, r, p)
}

// lifetime is an application's only kind of timeout.
const lifetime = "LIFETIME"

func (o *Door) timeouts(w http.ResponseWriter, r *http.Request) {
	s, at, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.reply(w, r, http.StatusOK, "timeouts", rooted, func(w *writer) {
		w.List("timeout", 1, func(w *writer, _ int) { timeoutFields(w, o.d.Report(&s.app, at, true)) })
	})
}

func (o *Door) timeout(w http.ResponseWriter, r *http.Request) {
	s, at, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	if kind := param(r, "type"); !strings.EqualFold(kind, lifetime) {
		o.refuse(w, r, badRequest(cause+"Invalid application-state "+kind+" specified. It should be one of [LIFETIME]"))
		return
	}
	o.timeoutReply(w, r, o.d.Report(&s.app, at, true))
}

func (o *Door) timeoutReply(w http.ResponseWriter, r *http.Request, p *yarnpb.ApplicationReportProto) {
	o.reply(w, r, http.StatusOK, "timeout", rooted, func(w *writer) { timeoutFields(w, p) })
}

type timeoutDoc struct {
	Type   string `json:"type" xml:"type"`
	Expiry string `json:"expiryTime" xml:"expiryTime"`
}

// setTimeout changes when an application is killed. It is the one document
// whose JSON needs its root.
func (o *Door) setTimeout(w http.ResponseWriter, r *http.Request) {
	s, at, err := o.view(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	var doc timeoutDoc
	if sendsXML(r) {
		err = o.decode(w, r, &doc)
	} else {
		var root struct {
			Timeout *timeoutDoc `json:"timeout"`
		}
		if err = o.decode(w, r, &root); err == nil && root.Timeout == nil {
			err = &refusal{
				http.StatusBadRequest,
				classWeb,
				`javax.xml.bind.UnmarshalException: expected {"timeout":{"type":"LIFETIME","expiryTime":"..."}}`,
			}
		}
		if root.Timeout != nil {
			doc = *root.Timeout
		}
	}
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	if doc.Type != lifetime || doc.Expiry == "" {
		o.text(w, r, http.StatusBadRequest, "Timeout type or ExpiryTime is null.")
		return
	}
	deadline, err := time.Parse("2006-01-02T15:04:05.999-0700", doc.Expiry)
	if err != nil {
		o.refuse(
			w,
			r,
			&refusal{
				http.StatusServiceUnavailable,
				"java.time.format.DateTimeParseException",
				"Text '" + doc.Expiry + "' could not be parsed at index 0",
			},
		)
		return
	}
	if !s.app.State.Ended() {
		if err := o.d.SetApplicationLifetime(r.Context(), o.caller(r), s.app.ID, deadline); err != nil {
			o.refuseWrite(w, r, "update timeout of", s.app.ID, err)
			return
		}
		if s, at, err = o.view(r); err != nil {
			o.refuse(w, r, err)
			return
		}
	}
	o.timeoutReply(w, r, o.d.Report(&s.app, at, true))
}

// The commands of a signal, in the order of their numbers.
var signals = []string{"OUTPUT_THREAD_DUMP", "GRACEFUL_SHUTDOWN", "FORCEFUL_SHUTDOWN"}

// signal sends a container a signal; what is wrong is told in plain sentences.
func (o *Door) signal(w http.ResponseWriter, r *http.Request) {
	command := strings.ToUpper(param(r, "command"))
	number := int32(-1)
	for i, s := range signals {
		if s == command {
			number = int32(i) + 1
		}
	}
	if number < 0 {
		o.text(
			w,
			r,
			http.StatusBadRequest,
			"Invalid command: "+command+", valid commands are: ["+strings.Join(signals, ", ")+"]",
		)
		return
	}
	text := param(r, "containerid")
	id, err := creel.ParseContainerID(text)
	if err != nil {
		o.text(w, r, http.StatusInternalServerError, "Invalid ContainerId prefix: "+text)
		return
	}
	known := false
	if err := o.read(r.Context(), func(m *rm.Machine, _ time.Time) { _, known = m.Container(id) }); err != nil {
		o.refuse(w, r, err)
		return
	}
	if !known {
		o.text(w, r, http.StatusInternalServerError, "Trying to signal an absent container "+id.String())
		return
	}
	if err := o.d.SignalContainer(r.Context(), o.caller(r), id, number); err != nil {
		o.text(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header()["Content-Type"] = contentType(r)
	w.WriteHeader(http.StatusOK)
}

// setNodeResource changes a node's size.
func (o *Door) setNodeResource(w http.ResponseWriter, r *http.Request) {
	id, err := nodeOf(r)
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	var doc struct {
		Resource *struct {
			Memory number `json:"memory" xml:"memory"`
			VCores number `json:"vCores" xml:"vCores"`
			Others struct {
				Entry []struct {
					Name  string `json:"name" xml:"name"`
					Value number `json:"value" xml:"value"`
				} `json:"resourceInformation" xml:"resourceInformation"`
			} `json:"resourceInformations" xml:"resourceInformations"`
		} `json:"resource" xml:"resource"`
	}
	if err := o.decode(w, r, &doc); err != nil {
		o.refuse(w, r, err)
		return
	}
	var n rm.NodeView
	find := func() error {
		return o.ask(r, func(m *rm.Machine, _ time.Time) error {
			var ok bool
			if n, ok = m.Node(id); !ok {
				return notFound("nodeId, " + id.String() + ", is not found")
			}
			return nil
		})
	}
	if err := find(); err != nil {
		o.refuse(w, r, err)
		return
	}
	if doc.Resource == nil {
		o.refuse(w, r, badRequest(cause+`the body names no resource; give {"resource":{"memory":m,"vCores":n}}`))
		return
	}
	size := creel.NewResource(int64(doc.Resource.Memory), int64(doc.Resource.VCores))
	for _, e := range doc.Resource.Others.Entry {
		if e.Name != creel.MemoryName && e.Name != creel.VCoresName {
			size = size.With(e.Name, int64(e.Value))
		}
	}
	err = o.d.UpdateNodeResource(r.Context(), o.caller(r), id, size)
	if err == nil {
		err = find()
	} else if !errors.Is(err, creel.ErrNotPermitted) && !errors.Is(err, creel.ErrNodeNotFound) {
		err = &refusal{http.StatusServiceUnavailable, classYarn, err.Error()}
	}
	if err != nil {
		o.refuse(w, r, err)
		return
	}
	o.reply(
		w,
		r,
		http.StatusOK,
		"resourceInfo",
		rooted,
		func(w *writer) { o.resourceFields(w, n.Total, 0, 1<<63-1, 0, 1<<63-1) },
	)
}
