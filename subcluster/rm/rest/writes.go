// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/webdoc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// refuseWrite writes the error of a change: a denial as a plain sentence, as YARN does, and everything else as a
// RemoteException.
func (h *appsAPI) refuseWrite(w http.ResponseWriter, r *http.Request, what string, id creel.ApplicationID, err error) {
	var e *refusal
	if errors.Is(err, creel.ErrNotPermitted) && !errors.As(err, &e) {
		h.text(
			w,
			r,
			http.StatusForbidden,
			fmt.Sprintf("Unauthorized attempt to %s appid %s by remote user %s", what, id, h.caller(r).User),
		)
		return
	}
	if !errors.As(err, &e) {
		err = &refusal{http.StatusServiceUnavailable, classYarn, err.Error()} // a YarnException for any kind
	}
	h.refuse(w, r, err)
}

// stateReply sends the ResourceManager's internal state, KILLING and FINAL_SAVING included: clients poll it until the
// final state.
func (h *appsAPI) stateReply(w http.ResponseWriter, r *http.Request, status int, a *rm.AppView) {
	h.reply(w, r, status, "appstate", mapped, func(w *writer) { w.Text("state", a.Internal) })
}

func (h *appsAPI) state(w http.ResponseWriter, r *http.Request) {
	s, _, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.stateReply(w, r, http.StatusOK, &s.app)
}

// setState kills an application. It responds 202 while the kill is in progress, and 200 when the state is final.
func (h *appsAPI) setState(w http.ResponseWriter, r *http.Request) {
	s, _, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var doc struct {
		XMLName     xml.Name    `json:"-" xml:"appstate"`
		State       webdoc.Text `json:"state" xml:"state"`
		Diagnostics webdoc.Text `json:"diagnostics" xml:"diagnostics"`
	}
	if err := h.decode(w, r, &doc); err != nil {
		h.refuse(w, r, err)
		return
	}
	if string(doc.State) == s.app.Internal {
		h.stateReply(w, r, http.StatusOK, &s.app)
		return
	}
	if string(doc.State) != creel.AppKilled.String() {
		h.refuse(w, r, badRequest(cause+"Only 'KILLED' is allowed as a target state."))
		return
	}
	if s.app.State.Ended() {
		h.stateReply(w, r, http.StatusOK, &s.app)
		return
	}
	done, err := do(h.Handler, r, h.s.Kill(h.caller(r), s.app.ID, string(doc.Diagnostics)))
	if err != nil {
		h.refuseWrite(w, r, "kill", s.app.ID, err)
		return
	}
	after, _, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	status := http.StatusOK
	if !done && !after.app.State.Ended() {
		status = http.StatusAccepted
		w.Header().Set("Location", webdoc.Origin(r)+r.URL.Path)
	}
	h.stateReply(w, r, status, &after.app)
}

func (h *appsAPI) queueReply(w http.ResponseWriter, r *http.Request, q creel.QueuePath) {
	h.reply(w, r, http.StatusOK, "appqueue", natural, func(w *writer) { w.Text("queue", string(q)) })
}

func (h *appsAPI) queue(w http.ResponseWriter, r *http.Request) {
	s, _, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.queueReply(w, r, s.app.Queue)
}

// setQueue moves an application.
func (h *appsAPI) setQueue(w http.ResponseWriter, r *http.Request) {
	s, _, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var doc struct {
		XMLName xml.Name    `json:"-" xml:"appqueue"`
		Queue   webdoc.Text `json:"queue" xml:"queue"`
	}
	if err := h.decode(w, r, &doc); err != nil {
		h.refuse(w, r, err)
		return
	}
	switch {
	case string(doc.Queue) == string(s.app.Queue):
		h.queueReply(w, r, s.app.Queue)
		return
	case s.app.State.Ended():
		h.text(w, r, http.StatusBadRequest, "App in "+s.app.State.String()+" state cannot be moved.")
		return
	}
	if _, err := do(h.Handler, r, h.s.Move(h.caller(r), s.app.ID, string(doc.Queue))); err != nil {
		h.refuseWrite(w, r, "move", s.app.ID, err)
		return
	}
	if s, _, err = h.view(r); err != nil {
		h.refuse(w, r, err)
		return
	}
	h.queueReply(w, r, s.app.Queue)
}

func (h *appsAPI) priorityReply(w http.ResponseWriter, r *http.Request, p int32) {
	h.reply(w, r, http.StatusOK, "applicationpriority", natural, func(w *writer) { w.Int("priority", int64(p)) })
}

func (h *appsAPI) priority(w http.ResponseWriter, r *http.Request) {
	s, _, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.priorityReply(w, r, s.app.Priority)
}

func (h *appsAPI) setPriority(w http.ResponseWriter, r *http.Request) {
	s, _, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var doc struct {
		XMLName  xml.Name    `json:"-" xml:"applicationpriority"`
		Priority *webdoc.Int `json:"priority" xml:"priority"`
	}
	if err := h.decode(w, r, &doc); err != nil {
		h.refuse(w, r, err)
		return
	}
	if doc.Priority == nil {
		h.refuse(w, r, badRequest(cause+"Priority value is null; give {\"priority\": n}"))
		return
	}
	p := s.app.Priority
	if !s.app.State.Ended() {
		if p, err = do(h.Handler, r, h.s.SetPriority(h.caller(r), s.app.ID, int32(*doc.Priority))); err != nil {
			h.refuseWrite(w, r, "change priority of", s.app.ID, err)
			return
		}
	}
	h.priorityReply(w, r, p)
}

// lifetime is an application's only kind of timeout.
const lifetime = "LIFETIME"

func (h *appsAPI) timeouts(w http.ResponseWriter, r *http.Request) {
	s, at, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(w, r, http.StatusOK, "timeouts", rooted, func(w *writer) {
		w.List("timeout", 1, func(w *writer, _ int) { timeoutFields(w, h.s.Cluster().Report(&s.app, at, true)) })
	})
}

func (h *appsAPI) timeout(w http.ResponseWriter, r *http.Request) {
	s, at, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if kind := param(r, "type"); !strings.EqualFold(kind, lifetime) {
		h.refuse(w, r, badRequest(cause+"Invalid application-state "+kind+" specified. It should be one of [LIFETIME]"))
		return
	}
	h.timeoutReply(w, r, h.s.Cluster().Report(&s.app, at, true))
}

func (h *appsAPI) timeoutReply(w http.ResponseWriter, r *http.Request, p *yarnpb.ApplicationReportProto) {
	h.reply(w, r, http.StatusOK, "timeout", rooted, func(w *writer) { timeoutFields(w, p) })
}

type timeoutDoc struct {
	XMLName xml.Name    `json:"-" xml:"timeout"`
	Type    webdoc.Text `json:"type" xml:"type"`
	Expiry  webdoc.Text `json:"expiryTime" xml:"expiryTime"`
}

// setTimeout changes the time of an application's kill. Only this document requires its root in JSON.
func (h *appsAPI) setTimeout(w http.ResponseWriter, r *http.Request) {
	s, at, err := h.view(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var doc timeoutDoc
	body, err := h.body(w, r)
	switch {
	case err != nil:
	case body.Kind == webdoc.XML:
		err = unreadable(body.Decode(&doc))
	default:
		var root struct {
			Timeout *timeoutDoc `json:"timeout"`
		}
		if err = unreadable(body.Decode(&root)); err == nil && root.Timeout == nil {
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
		h.refuse(w, r, err)
		return
	}
	if doc.Type != lifetime || doc.Expiry == "" {
		h.text(w, r, http.StatusBadRequest, "Timeout type or ExpiryTime is null.")
		return
	}
	deadline, err := time.Parse("2006-01-02T15:04:05.999-0700", string(doc.Expiry))
	if err != nil {
		h.refuse(
			w,
			r,
			&refusal{
				http.StatusServiceUnavailable,
				"java.time.format.DateTimeParseException",
				"Text '" + string(doc.Expiry) + "' could not be parsed at index 0",
			},
		)
		return
	}
	if !s.app.State.Ended() {
		expiries := []string{codec.FormatExpiry(deadline)}
		if _, err := do(h.Handler, r, h.s.SetLifetimes(h.caller(r), s.app.ID, expiries)); err != nil {
			h.refuseWrite(w, r, "update timeout of", s.app.ID, err)
			return
		}
		if s, at, err = h.view(r); err != nil {
			h.refuse(w, r, err)
			return
		}
	}
	h.timeoutReply(w, r, h.s.Cluster().Report(&s.app, at, true))
}

// signal sends a container a signal; errors are plain sentences.
func (h *appsAPI) signal(w http.ResponseWriter, r *http.Request) {
	command := strings.ToUpper(param(r, "command"))
	number, known := creel.SignalCommand(command)
	if !known {
		h.text(
			w,
			r,
			http.StatusBadRequest,
			"Invalid command: "+command+", valid commands are: ["+strings.Join(creel.SignalCommands, ", ")+"]",
		)
		return
	}
	text := param(r, "containerid")
	id, err := creel.ParseContainerID(text)
	if err != nil {
		h.text(w, r, http.StatusInternalServerError, "Invalid ContainerId prefix: "+text)
		return
	}
	if _, err := do(h.Handler, r, h.s.Signal(h.caller(r), id, number)); err != nil {
		text := err.Error()
		if errors.Is(err, creel.ErrApplicationNotFound) {
			text = "Trying to signal an absent container " + id.String()
		}
		h.text(w, r, http.StatusInternalServerError, text)
		return
	}
	w.Header()["Content-Type"] = contentType(r)
	w.WriteHeader(http.StatusOK)
}

// unitOf returns the configured unit of a resource type.
func (h *Handler) unitOf(name string) string {
	for _, t := range h.conf.Resources {
		if t.Name == name {
			return t.Unit
		}
	}
	return ""
}

// setNodeResource changes a node's size.
func (h *nodesAPI) setNodeResource(w http.ResponseWriter, r *http.Request) {
	id, err := nodeOf(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	var doc struct {
		XMLName  xml.Name `json:"-" xml:"resourceOption"`
		Resource *struct {
			Memory webdoc.Long `json:"memory" xml:"memory"`
			VCores webdoc.Int  `json:"vCores" xml:"vCores"`
			Others struct {
				Entry webdoc.Many[struct {
					Name  webdoc.Text `json:"name" xml:"name"`
					Value webdoc.Long `json:"value" xml:"value"`
					Units *string     `json:"units" xml:"units"`
				}] `json:"resourceInformation" xml:"resourceInformation"`
			} `json:"resourceInformations" xml:"resourceInformations"`
		} `json:"resource" xml:"resource"`
		OverCommit webdoc.Int `json:"overCommitTimeout" xml:"overCommitTimeout"`
	}
	if err := h.decode(w, r, &doc); err != nil {
		h.refuse(w, r, err)
		return
	}
	var n rm.NodeView
	find := func() error {
		return h.ask(r, func(m *rm.Machine, _ time.Time) error {
			var ok bool
			if n, ok = m.Node(id); !ok {
				return notFound("nodeId, " + id.String() + ", is not found")
			}
			return nil
		})
	}
	if err := find(); err != nil {
		h.refuse(w, r, err)
		return
	}
	if doc.Resource == nil {
		h.refuse(w, r, badRequest(cause+`the body names no resource; give {"resource":{"memory":m,"vCores":n}}`))
		return
	}
	size := creel.NewResource(int64(doc.Resource.Memory), int64(doc.Resource.VCores))
	for _, e := range doc.Resource.Others.Entry {
		if e.Name == creel.MemoryName || e.Name == creel.VCoresName {
			continue
		}
		units := e.Units
		if units == nil {
			units = new(h.unitOf(string(e.Name)))
		}
		v, err := creel.ConvertUnits(int64(e.Value), *units, "")
		if err != nil {
			h.refuse(w, r, badRequest(cause+string(e.Name)+": "+err.Error()))
			return
		}
		size = size.With(string(e.Name), v)
	}
	_, err = do(h.Handler, r, h.s.UpdateNodeResource(h.caller(r), id, size))
	if err == nil {
		err = find()
	} else if errors.Is(err, creel.ErrInvalidRequest) {
		err = badRequest(cause + err.Error())
	} else if !errors.Is(err, creel.ErrNotPermitted) && !errors.Is(err, creel.ErrNodeNotFound) {
		err = &refusal{http.StatusServiceUnavailable, classYarn, err.Error()}
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.reply(
		w,
		r,
		http.StatusOK,
		"resourceInfo",
		rooted,
		func(w *writer) { h.resourceFields(w, n.Total, 0, 1<<63-1, 0, 1<<63-1) },
	)
}
