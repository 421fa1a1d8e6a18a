// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// The calls of `yarn routeradmin` about the federation's records (Hadoop 3.4, ResourceManagerAdministrationProtocol).
// Its client prints the texts unchanged.

// GetFederationSubClusters lists the members, with Hadoop's names of states.
func (h *AdminHandler) GetFederationSubClusters(
	context.Context,
	*yarnpb.GetSubClustersRequestProto,
) (*yarnpb.GetSubClustersResponseProto, error) {
	view := h.server.View()
	if view == nil {
		return nil, missingError("the subclusters", "this router has not read the state store yet")
	}
	out := &yarnpb.GetSubClustersResponseProto{}
	for i := range view.Members {
		m := &view.Members[i]
		out.SubClusters = append(out.SubClusters, &yarnpb.FederationSubClusterProto{
			SubClusterId:      proto.String(string(m.ID)),
			LastHeartBeatTime: proto.String(lastHeartbeat(view, m)),
			SubClusterState:   proto.String(m.State.Hadoop()),
		})
	}
	return out, nil
}

// lastHeartbeat returns the time of a member's last heartbeat, by the store's clock, in Java's format of dates.
func lastHeartbeat(view *subcluster.View, m *subcluster.Status) string {
	return view.At.Add(-m.Age).UTC().Format(time.UnixDate)
}

// DeregisterSubCluster deregisters a named silent member, or all silent members. Hadoop documents the same, but
// without a name it deregisters all healthy members.
func (h *AdminHandler) DeregisterSubCluster(
	ctx context.Context,
	req *yarnpb.DeregisterSubClusterRequestProto,
) (*yarnpb.DeregisterSubClusterResponseProto, error) {
	ids := []creel.SubclusterID{creel.SubclusterID(req.GetSubClusterId())}
	if strings.TrimSpace(req.GetSubClusterId()) == "" {
		ids = h.operator.Silent()
	}
	out, note := &yarnpb.DeregisterSubClusterResponseProto{}, audit.NoteOf(ctx)
	var names []string
	for _, id := range ids {
		names = append(names, string(id))
		note.Target = audit.Targets(names)
		view := h.server.View()
		result, info := "SUCCESS", "it sent no heartbeats and was deregistered"
		state, at := subcluster.StateDeregistered, ""
		m, known := view.Member(id)
		if known {
			at = lastHeartbeat(view, m)
		}
		if err := h.operator.Deregister(withOrigin(ctx), user(ctx), id); err != nil {
			if !known || errors.Is(err, creel.ErrNotPermitted) {
				return nil, err
			}
			result, info, state = "FAILED", err.Error(), m.State
			if note.Err != nil {
				err = fmt.Errorf("%w; %w", note.Err, err)
			}
			note.Err = err
		}
		out.DeregisterSubClusters = append(out.DeregisterSubClusters, &yarnpb.DeregisterSubClustersProto{
			SubClusterId:      proto.String(string(id)),
			DeregisterState:   proto.String(result),
			LastHeartBeatTime: proto.String(at),
			Information:       proto.String(info),
			SubClusterState:   proto.String(state.Hadoop()),
		})
	}
	return out, nil
}

// SaveFederationQueuePolicy writes a queue's policy as a document in Hadoop's format.
func (h *AdminHandler) SaveFederationQueuePolicy(
	ctx context.Context,
	req *yarnpb.SaveFederationQueuePolicyRequestProto,
) (*yarnpb.SaveFederationQueuePolicyResponseProto, error) {
	w := proto.CloneOf(req.GetFederationQueueWeight())
	w.Queue = proto.String(req.GetQueue())
	if req.PolicyManagerClassName != nil {
		w.PolicyManagerClassName = req.PolicyManagerClassName
	}
	message, err := h.savePolicies(ctx, []*yarnpb.FederationQueueWeightProto{w})
	return &yarnpb.SaveFederationQueuePolicyResponseProto{Message: &message}, err
}

// BatchSaveFederationQueuePolicies writes policies of many queues. It checks all before it writes the first.
func (h *AdminHandler) BatchSaveFederationQueuePolicies(
	ctx context.Context,
	req *yarnpb.BatchSaveFederationQueuePoliciesRequestProto,
) (*yarnpb.BatchSaveFederationQueuePoliciesResponseProto, error) {
	message, err := h.savePolicies(ctx, req.GetFederationQueueWeights())
	return &yarnpb.BatchSaveFederationQueuePoliciesResponseProto{Message: &message}, err
}

func (h *AdminHandler) savePolicies(ctx context.Context, list []*yarnpb.FederationQueueWeightProto) (string, error) {
	writes := make([]statestore.PolicyWrite, len(list))
	for i, w := range list {
		q, err := wholePath(w.GetQueue())
		if err != nil {
			return "", err
		}
		document, err := hadoopPolicy(q, w)
		if err != nil {
			return "", err
		}
		writes[i] = statestore.PolicyWrite{Queue: q, Document: document, Comment: "yarn routeradmin"}
	}
	return h.writePolicies(ctx, "saved", writes)
}

// writePolicies writes the policies if all are valid. If a write fails, the error lists the policies written before.
func (h *AdminHandler) writePolicies(
	ctx context.Context, done string, writes []statestore.PolicyWrite,
) (string, error) {
	if len(writes) == 0 {
		return "", &creel.Error{Kind: creel.ErrInvalidRequest, What: "the request names no queue"}
	}
	for _, w := range writes {
		if err := h.operator.CheckWrite(ctx, user(ctx), w, false); err != nil {
			return "", err
		}
	}
	var before []string
	for _, w := range writes {
		p, err := h.operator.Write(withOrigin(ctx), user(ctx), w)
		switch {
		case err != nil && len(before) > 0:
			return "", fmt.Errorf("%w; %s before it: %s", err, done, strings.Join(before, ", "))
		case err != nil:
			return "", err
		case len(w.Document) == 0:
			before = append(before, string(p.Queue))
		default:
			before = append(before, fmt.Sprintf("%s is at version %d", p.Queue, p.Version))
		}
	}
	return done + ": " + strings.Join(before, ", "), nil
}

// wholePath reads the name of a queue; Hadoop's tools write it with or without root.
func wholePath(text string) (creel.QueuePath, error) {
	if text == "*" {
		return "*", nil
	}
	q, err := creel.ParseQueuePath(text)
	if err == nil && !q.IsFull() {
		q = creel.RootQueue.Child(text)
	}
	return q, err
}

// weighty has Hadoop's policy managers that use weights.
var weighty = []string{"", "WeightedLocality", "PriorityBroadcast", "WeightedHome"}

// hadoopPolicy makes the document of a policy manager with weights, in the format of policies.Parse.
func hadoopPolicy(q creel.QueuePath, w *yarnpb.FederationQueueWeightProto) ([]byte, error) {
	class := w.GetPolicyManagerClassName()
	name := strings.TrimSuffix(class[strings.LastIndexByte(class, '.')+1:], "PolicyManager")
	if !slices.Contains(weighty, name) {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("the policy of %s is not saved", q),
			Why:  fmt.Sprintf("the policy manager %.120q takes no weights", class),
			Try: "set yarn.federation.policy-manager of the client to the class of WeightedLocalityPolicyManager, " +
				"PriorityBroadcastPolicyManager or WeightedHomePolicyManager, or use `creel policy set`",
		}
	}
	router, err := weights(q, "router", w.GetRouterWeight())
	if err != nil {
		return nil, err
	}
	amrm, err := weights(q, "AMRM", w.GetAmrmWeight())
	if err != nil {
		return nil, err
	}
	params := map[string]any{"routerPolicyWeights": router, "amrmPolicyWeights": amrm}
	if alpha := strings.TrimSpace(w.GetHeadRoomAlpha()); alpha != "" {
		params["headroomAlpha"] = alpha
	}
	return json.Marshal(map[string]any{"type": class, "queue": q, "params": params})
}

// weights reads "SC-1:0.7,SC-2:0.3".
func weights(q creel.QueuePath, whose, text string) (map[string]float64, error) {
	refuse := func(why string, args ...any) (map[string]float64, error) {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("the policy of %s is not saved", q),
			Why:  "its " + whose + " weights " + fmt.Sprintf(why, args...),
			Try:  "write them as SC-1:0.7,SC-2:0.3",
		}
	}
	out := map[string]float64{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		id, number, ok := strings.Cut(part, ":")
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		id = strings.TrimSpace(id)
		if _, twice := out[id]; twice {
			return refuse("name %.80s twice", id)
		}
		if !ok || err != nil || id == "" || !(v >= 0) || math.IsInf(v, 1) {
			return refuse("have %.80q", part)
		}
		out[id] = v
	}
	if len(out) == 0 {
		return refuse("are missing")
	}
	return out, nil
}

// ListFederationQueuePolicies lists a page of queues' own policies, by name. A policy without weights has its name in
// their place.
func (h *AdminHandler) ListFederationQueuePolicies(
	ctx context.Context,
	req *yarnpb.QueryFederationQueuePoliciesRequestProto,
) (*yarnpb.QueryFederationQueuePoliciesResponseProto, error) {
	list, err := h.operator.Policies(ctx)
	if err != nil {
		return nil, err
	}
	names := req.GetQueues()
	if q := req.GetQueue(); q != "" {
		names = append(slices.Clone(names), q)
	}
	wanted := make([]creel.QueuePath, len(names))
	for i, name := range names {
		if wanted[i], err = wholePath(name); err != nil {
			return nil, err
		}
	}
	list = slices.DeleteFunc(list, func(p subcluster.Policy) bool {
		return len(p.Document) == 0 || len(wanted) > 0 && !slices.Contains(wanted, p.Queue)
	})
	size, page := int(req.GetPageSize()), int(req.GetCurrentPage())
	if size <= 0 {
		size = 10 // Hadoop's default
	}
	pages := (len(list) + size - 1) / size
	if page <= 0 {
		page = 1
	}
	if page > max(pages, 1) {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("there is no page %d of the policies", page),
			Why:  fmt.Sprintf("%d policies are %d pages of %d", len(list), pages, size),
		}
	}
	out := &yarnpb.QueryFederationQueuePoliciesResponseProto{
		TotalSize: proto.Int32(int32(len(list))), TotalPage: proto.Int32(int32(pages)),
		CurrentPage: proto.Int32(int32(page)), PageSize: proto.Int32(int32(size)),
	}
	for _, p := range list[min(len(list), (page-1)*size):min(len(list), page*size)] {
		w := &yarnpb.FederationQueueWeightProto{Queue: proto.String(string(p.Queue))}
		parsed, err := policies.Parse(p.Document)
		home, split := "unreadable", "unreadable"
		if err == nil {
			homeWeights, splitWeights := parsed.Weights()
			home, split = weightText(homeWeights, parsed.HomeName()), weightText(splitWeights, parsed.SplitName())
		}
		w.RouterWeight, w.AmrmWeight = &home, &split
		out.FederationQueueWeights = append(out.FederationQueueWeights, w)
	}
	return out, nil
}

func weightText(w policies.Weights, name string) string {
	if len(w) == 0 {
		return "(" + name + ")"
	}
	var parts []string
	for id, v := range w {
		parts = append(parts, string(id)+":"+strconv.FormatFloat(v, 'g', -1, 64))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// DeleteFederationPoliciesByQueues removes queues' own policies, so that their parents' policies apply.
func (h *AdminHandler) DeleteFederationPoliciesByQueues(
	ctx context.Context,
	req *yarnpb.DeleteFederationQueuePoliciesRequestProto,
) (*yarnpb.DeleteFederationQueuePoliciesResponseProto, error) {
	writes := make([]statestore.PolicyWrite, len(req.GetQueues()))
	for i, text := range req.GetQueues() {
		q, err := wholePath(text)
		if err != nil {
			return nil, err
		}
		writes[i] = statestore.PolicyWrite{Queue: q, Comment: "yarn routeradmin"}
	}
	message, err := h.writePolicies(ctx, "removed", writes)
	return &yarnpb.DeleteFederationQueuePoliciesResponseProto{Message: &message}, err
}

// DeleteFederationApplication deletes the record of an application's home.
func (h *AdminHandler) DeleteFederationApplication(
	ctx context.Context,
	req *yarnpb.DeleteFederationApplicationRequestProto,
) (*yarnpb.DeleteFederationApplicationResponseProto, error) {
	app, err := creel.ParseApplicationID(req.GetApplication())
	if err == nil {
		err = h.operator.Forget(ctx, user(ctx), app)
	}
	if err != nil {
		return nil, err
	}
	h.server.Forget(app)
	return &yarnpb.DeleteFederationApplicationResponseProto{
		Message: proto.String("the record of " + app.String() + " is deleted"),
	}, nil
}
