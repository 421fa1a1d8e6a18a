// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"

	"github.com/creelrm/creel"
)

// This file has Hadoop's sentences: the errors and diagnostics that its clients print, and that scripts search for.
// They are Hadoop's to the letter, with its capitals. An error that only creel has begins in lower case, and is where
// it is raised.

// refusal is an error in one of these sentences.
func refusal(kind error, sentence string, args ...any) error {
	return &creel.Error{Kind: kind, What: fmt.Sprintf(sentence, args...)}
}

// To AMs, about their calls.
const (
	amNotRegistered = "AM is not registered for known application attempt: %s or RM had restarted after AM " +
		"registered. AM should re-register."
	wrongResponseID = "Invalid responseId in AllocateRequest from application attempt: %s, expect " +
		"responseId to be %d but get %d"
	negativeCount        = "Invalid resource request, requested number of containers < 0, numContainers=%d"
	blacklistOfAll       = "Cannot add * to the blacklist!"
	foreignRelease       = "Cannot release container : %s not belonging to this application attempt : %s"
	amRegisteredTwice    = "Application Master is already registered : %s"
	amNotLaunched        = "Application Master of %s must register after it is LAUNCHED"
	amUnregistersEarly   = "Application Master is trying to unregister before registering for: %s"
	constraintsUnhandled = "Found non empty placement constraints in register request"
	schedulingUnhandled  = "Found non empty SchedulingRequest in AllocateRequest"
	schedulingUnderFair  = "Found non empty SchedulingRequest of AllocateRequest for application=%s, however " +
		"the configured scheduler=FairScheduler cannot handle placement constraints, " +
		"rejecting this allocate operation"
	onlyGuaranteed = "Only GUARANTEED execution type is supported."
)

// To clients, about applications, attempts and containers.
const (
	appUnknown = "Application with id '%s' doesn't exist in RM. Please check that the job submission " +
		"was successful."
	attemptUncached     = "Application attempt %s doesn't exist in ApplicationMasterService cache."
	attemptUnknown      = "ApplicationAttempt with id '%s' doesn't exist in RM."
	containerUnknown    = "Container with id '%s' doesn't exist"
	signalledUnknown    = "Container: %s doesn't exist"
	queueUnknown        = "Unknown queue: %s"
	moveTooLate         = "App in %s state cannot be moved."
	expireInvalid       = "Expire time is not valid"
	priorityForbidden   = "User %s (auth:SIMPLE) does not have permission to submit/update %s for %d"
	submissionForbidden = "User %s does not have permission to submit %s to queue %s"
)

// Diagnostics of applications and attempts that end.
const (
	submissionUnmapped = "Application %s submission by user %s to specified queue : %s is prohibited. Verify " +
		"automatic queue mapping for user exists in yarn.scheduler.capacity.queue-mappings"
	submittedNowhere     = "Application %s submitted by user %s to unknown queue: %s"
	lifetimeExceeded     = "Application killed due to exceeding its lifetime period %d milliseconds"
	tooManyFailures      = "Application %s failed %d times due to %s. Failing the application."
	failedByUser         = "Attempt failed by user."
	launchFailed         = "Error launching %s. Got exception: %s"
	amTimedOut           = "ApplicationMaster for attempt %s timed out"
	amExited             = "AM Container for %s exited with  exitCode: %d\n%s"
	diagnosticsTruncated = "Diagnostic messages truncated, showing last %d chars out of %d:\n...%s"
)

// Diagnostics of containers that end.
const (
	containerUnused    = "Container expired since it was unused"
	containerReleased  = "Container released by application"
	containerPreempted = "Container preempted by scheduler"
	onLostNode         = "Container released on a *lost* node"
	onUnhealthyNode    = "Container released on an *unhealthy* node"
)

// To nodes and their administrators.
const (
	nodeUnknown       = "nodeId, %s, is not found"
	nodeResyncs       = "Node not found resyncing %s"
	nodeDisallowed    = "Disallowed NodeManager nodeId: %s hostname:%s"
	nodeTooFarBehind  = "Too far behind rm response id:%d nm response id:%d"
	nodeMayLeave      = "DECOMMISSIONING %s is ready to be decommissioned"
	hostDisallowed    = "Disallowed NodeManager from  %s, Sending SHUTDOWN signal to the NodeManager."
	versionDisallowed = "Disallowed NodeManager Version %s, is less than the minimum version %s sending " +
		"SHUTDOWN signal to NodeManager."
	nodeTooSmall = "NodeManager from  %s doesn't satisfy minimum allocations, Sending SHUTDOWN signal " +
		"to the NodeManager. Node capabilities are %s; minimums are %s"
)

// About labels of asks.
const (
	labelAtPlace = "Invalid resource request, queue=%s specified node label expression in a resource " +
		"request has resource name = %s"
	severalLabels = "Invalid resource request, queue=%s specified more than one node label in a node " +
		"label expression, node label expression = %s"
	labelInaccessible = "Invalid resource request, queue=%s doesn't have permission to access all labels in " +
		"resource request. labelExpression of resource request=%s. Queue labels=%s"
	labelUnknown = "Invalid label resource request, cluster do not contain , label= %s"
	labelsUnused = "Invalid resource request, node label not enabled but request contains label " +
		"expression"
)

// About labels of nodes.
const (
	labelsDisabled  = "Node-label-based scheduling is disabled. Please check yarn.node-labels.enabled"
	labelLength     = "label added is empty or exceeds %d character(s)"
	labelCharacters = "label name should only contains {0-9, a-z, A-Z, -, _} and should not started with " +
		"{-,_}, now it is= %s"
	labelExclusivity    = "Exclusivity cannot be modified for an existing label with : <%s:exclusivity=%v>"
	removedLabelEmpty   = "Label to be removed is null or empty"
	removedLabelUnknown = "Node label=%s to be removed doesn't existed in cluster node labels collection."
	removedLabelInUse   = "Cannot remove label=%s, because queue=%s is using this label. Please remove label " +
		"on queue before remove the label"
	labelsAreReported    = "Error when invoke method=%s because of distributed node label configuration enabled."
	labelledNodesUnknown = "Replace labels on node failed. Unknown Nodes:[%s]"
	severalNodeLabels    = "%d labels specified on host=%s, please note that we do not support specifying " +
		"multiple labels on a single host for now."
	nodeLabelUnknown = "Not all labels being replaced contained by known label collections, please check, " +
		"new labels=[%s]"
)

// About attributes of nodes.
const (
	attributeNameLength     = "attribute name added is empty or exceeds %d character(s)"
	attributeNameCharacters = "attribute name should only contains {0-9, a-z, A-Z, -, _} and should not started " +
		"with {-,_}, now it is= %s"
	attributePrefixCharacters = "attribute value should only contains {0-9, a-z, A-Z, -, _,.} and should not started " +
		"with {-,_}, now it is= %s"
	attributeValueCharacters = "attribute value should only contains {0-9, a-z, A-Z, -, _} and should not started " +
		"with {-,_}, now it is= %s"
	attributeOperation       = "Invalid operation %d specified in the mapAttributesToNodes request "
	attributePrefixForbidden = "Invalid Attribute Mapping for the node %s. Prefix should be %s"
	attributeHostsUnknown    = " Following nodes does not exist : [%s]"
	attributeUnknown         = "Node attribute [Prefix-%s :Name-%s] doesn't exist on node %s"
	reportedPrefixForbidden  = "Reject invalid node attributes from host: %s, attributes in HB must have prefix %s"
	attributeValueLength     = "Attribute value added exceeds %d character(s)"
)

// Of creel's, about limits that Hadoop lacks.
const (
	tooMuchScheduling = "Too many scheduling requests: %d in one call, %d outstanding"
	nodeTooLarge      = "NodeManager %s cannot serve: it offers %s, more %s than a node can have (%d);" +
		" correct yarn.nodemanager.resource.* on that host and start it again"
)
