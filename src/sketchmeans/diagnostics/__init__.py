"""Numbers that say how good a fit or a plan is.

Before a fit: how fast the spectrum decays, its effective dimension, and how many
landmarks or sketched features the theory asks for, and what other bandwidths and
numbers of clusters would give.  After it: a certified bound on the distance to the
optimum, whether the landmarks preserve the kernel matrix, the cost on new rows, the
agreement with known classes, what the clusters look like, and a map of the rows.
The public names of `sketchmeans.theory` are here, too.
"""

from __future__ import annotations

from sketchmeans import theory
from sketchmeans.cluster.segment_names import rename_segments, segment_names
from sketchmeans.diagnostics.advice import (
    Advice,
    advised_bandwidth,
    advised_cluster_count,
    bandwidth_grid,
)
from sketchmeans.diagnostics.agreement import (
    Agreement,
    Comparison,
    adjusted_rand_score,
    agreement,
    clustering_accuracy,
    compare_models,
    normalized_mutual_info_score,
)
from sketchmeans.diagnostics.calibration import calibrate
from sketchmeans.diagnostics.card import model_card
from sketchmeans.diagnostics.certificate import certificate
from sketchmeans.diagnostics.certificate_result import Certificate
from sketchmeans.diagnostics.cluster_count import (
    ClusterCount,
    are_round,
    choose_n_clusters,
)
from sketchmeans.diagnostics.column_changes import ColumnChange
from sketchmeans.diagnostics.columns import ColumnSummary, column_summary
from sketchmeans.diagnostics.drift import (
    Drift,
    SegmentChange,
    UnusualRows,
    drift,
)
from sketchmeans.diagnostics.explanation import (
    ColumnReason,
    RowExplanation,
    explain_row,
)
from sketchmeans.diagnostics.matching import LabelMatch, match_labels
from sketchmeans.diagnostics.paths import bandwidth_path, cluster_count_path
from sketchmeans.diagnostics.plan import Plan, plan
from sketchmeans.diagnostics.row_map import RowMap, row_map
from sketchmeans.diagnostics.scoring import RowScores, score_rows, soft_membership
from sketchmeans.diagnostics.segment_facts import Fact
from sketchmeans.diagnostics.segments import Segment, Segments, describe_segments
from sketchmeans.diagnostics.summary import ClusterSummary, cluster_summary
from sketchmeans.theory import *  # noqa: F403 - its public names are here, too

__all__ = [
    *theory.__all__,
    "Advice",
    "Agreement",
    "Certificate",
    "ClusterCount",
    "ClusterSummary",
    "ColumnChange",
    "ColumnReason",
    "ColumnSummary",
    "Comparison",
    "Drift",
    "LabelMatch",
    "Fact",
    "Plan",
    "RowExplanation",
    "RowMap",
    "RowScores",
    "SegmentChange",
    "UnusualRows",
    "Segment",
    "Segments",
    "adjusted_rand_score",
    "advised_bandwidth",
    "advised_cluster_count",
    "agreement",
    "are_round",
    "bandwidth_grid",
    "bandwidth_path",
    "calibrate",
    "certificate",
    "choose_n_clusters",
    "cluster_count_path",
    "cluster_summary",
    "clustering_accuracy",
    "column_summary",
    "compare_models",
    "drift",
    "explain_row",
    "match_labels",
    "describe_segments",
    "model_card",
    "normalized_mutual_info_score",
    "plan",
    "rename_segments",
    "row_map",
    "score_rows",
    "soft_membership",
    "segment_names",
]
