"""Writes the golden frames: the same messages as tests/messages, encoded by Google's protobuf.

Made with Python 3.11, grpcio-tools and protobuf as `versions.txt` says:
    python make.py        (from this folder)
One line of hexadecimal digits a frame.
"""
import importlib, pathlib, subprocess, sys, tempfile
from importlib.metadata import version

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[3] / "proto"
out = tempfile.mkdtemp()
subprocess.check_call([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT}", f"--python_out={out}",
                       *map(str, sorted(ROOT.glob("federation/v1/*.proto")))])
sys.path.insert(0, out)
m = importlib.import_module("federation.v1.matrix_pb2")
f = importlib.import_module("federation.v1.federation_pb2")
o = importlib.import_module("federation.v1.operations_pb2")

run = "heart-disease-1"
shape = lambda rows, columns: m.MatrixShape(rows=rows, columns=columns)
chunk = lambda matrix, values: m.Part(matrix=m.MatrixChunk(matrix=matrix, values=values))
numeric = m.ColumnMoments(numeric=m.NumericMoments(count=303, sum=-1.5, sum_squares=2.25, missing=7))
categorical = m.ColumnMoments(categorical=m.CategoricalMoments(counts=[12, 0, 300], missing=1))
columns = m.Part(columns=m.ColumnsChunk(columns=[numeric, categorical]))
histograms = m.Part(histograms=m.HistogramsChunk(histograms=[
    m.Histogram(ends=[300, 4096], counts=[290, 13]), m.Histogram()]))
pairs = f.PairCounts(similar=20, dissimilar=10)
totals = f.Totals(patients=600, pairs=pairs, sites=2)
evaluation = m.EvaluationCounts(rule="distance", neighbours=5, confusion=m.Confusion(
    rows=[m.ConfusionRow(counts=[40, 10]), m.ConfusionRow(counts=[11, 39])]))
withheld = m.EvaluationCounts(rule="inner_product", neighbours=5)
second = f.SecondMoments(patients=300, sums=shape(1, 2), products=shape(2, 2))
second_parts = [chunk(0, [0.5, -0.5]), chunk(1, [1, 2, 3, 4])]
split = m.TreeNode(patients=40, split=m.Split(feature=1, missing_left=True, left=1, at_most=54.5))
by_level = m.TreeNode(patients=30, split=m.Split(feature=2, left=3, levels=m.LevelSet(words=[5])))
leaves = [m.TreeNode(patients=n, classes=m.ClassCounts(patients=c)) for n, c in ((10, [10, 0]), (12, [0, 12]), (18, [0, 18]))]
present = m.TreeNode(patients=25, split=m.Split(feature=0, left=1, present=m.Present()))
hazard = m.TreeNode(patients=15, hazard=m.Hazard(ends=[3, 31], events=[10, 0], exposures=[12.5, 100]))
mean = m.TreeNode(patients=10, mean=-1.5)
trees, nodes = m.Trees(features=3, nodes=[5, 3]), m.Part(nodes=m.NodesChunk(
    nodes=[split, leaves[0], by_level, leaves[1], leaves[2], present, hazard, mean]))
edges = m.Part(edges=m.EdgesChunk(edges=[m.Edges(values=[54.5, 60]), m.Edges()]))
errors = [m.RuleErrors(rule="forest", measure=1, sums=m.ErrorSums(total=300, error=60)),
          m.RuleErrors(rule="gap", neighbours=5, measure=3)]
failed = o.Ending(failed=o.Failed(code="KDR-SITES", text="too few sites: wanted 3"))


def site(message, *parts):
    return [f.ToSiteFrame(message=message), *(f.ToSiteFrame(part=part) for part in parts)]


def ask(parts=(), **request):
    return site(f.ToSite(ask=f.Ask(run=run, exchange=3, **request)), *parts)


def reply(parts=(), **answer):
    message = f.ToCoordinator(reply=f.Reply(run=run, exchange=3, answer=f.Answer(**answer)))
    return [f.ToCoordinatorFrame(message=message), *(f.ToCoordinatorFrame(part=p) for p in parts)]


rows = m.RowsChunk(
    rounds=[m.RoundRow(round=1, primal_residual=0.5, dual_residual=0.25, penalty=1, seconds=0.125, sites_answered=2)],
    sites=[m.SiteResult(name="north", patients=300, pairs=30, bytes_sent=1000, bytes_received=2000,
                        rounds_missed=1, evaluation=[evaluation],
                        missing=[m.MissingShare(feature="chol", share=0.25)], errors=errors,
                        importance=[m.FeatureImportance(mean=0.125, standard_error=0.5)], trees=2)],
    features=[m.FeatureResult(name="cp=4", mean=0.5, scale=2, missing_share=0.0625)],
    dropped=["fbs=1"], notes=["south missed a round"])
golden = {
    "begin": site(f.ToSite(begin=f.Begin(run=run, job='name = "heart-disease"\n', seed=2**63, warrant=m.Warrant(
        token="monday", chain=[b"\x30\x00", b"\x30\x01\x02"], scheme=0x0403, signature=b"\x07\x08\x09")))),
    "describe": ask(describe=f.Describe()),
    "moments": ask(moments=f.AskMoments()),
    "prepare": ask([columns], prepare=f.Prepare(columns=2, totals=totals)),
    "prepare_with_quartiles": ask([chunk(0, [1, 2, 4]), columns],
                                  prepare=f.Prepare(columns=2, totals=totals, quartiles=shape(1, 3))),
    "quantiles": ask(quantiles=f.AskQuantiles()),
    "correlate": ask(second_parts, correlate=f.Correlate(second_moments=second)),
    "round": ask([chunk(0, [1, 2, 3, 4, 5, 6]), chunk(1, [-1, -2, -3, -4, -5, -6])],
                 round=f.Round(number=1, consensus=shape(3, 2), centre=shape(3, 2), penalty=1.5, tolerance=1e-6)),
    "grow_own": ask(grow_own=f.GrowOwn()),
    "grow": ask([edges], grow=f.Grow(trees=167, edges=2, event_times=[1, 2.5], class_weights=[1, 1])),
    "judge": ask([nodes], judge=f.Judge(first_tree=1, trees=trees)),
    "fold": ask([chunk(0, [1]), chunk(1, [-1])], round=f.Round(
        number=9, consensus=shape(1, 1), centre=shape(1, 1), penalty=1.5, tolerance=1e-3, gradient=True, fold=0)),
    "validate": ask([chunk(0, [0.5, -0.5]), chunk(1, [0.25, -0.25])],
                    validate=f.Validate(models=[shape(2, 1), shape(2, 1)], neighbours=[1, 5], number=10)),
    "finish": ask([chunk(0, [0.1, 0.2])], finish=f.Finish(consensus=shape(1, 2), neighbours=5)),
    "end": site(f.ToSite(end=f.End(run=run, ending="converged"))),
    "hello": [f.ToCoordinatorFrame(message=f.ToCoordinator(hello=f.Hello(version="0.1.0")))],
    "described": reply(described=f.Description(patients=303, classes=[164, 139])),
    "unfit": reply(unfit=f.Unfit(problems=[f.Problem(column="chol", found="mmol/l", wanted="mg/dl")])),
    "refused": reply(refused=f.Refusal(rule="patients_min", text="too few")),
    "failed": reply(failed=f.Failure(code="KDR-SITE", text="the disk is full")),
    "own_moments": reply([columns], moments=f.Moments(columns=2, summary=f.Summary(patients=310, pairs=pairs))),
    "own_quantiles": reply([histograms], quantiles=f.Quantiles(histograms=2)),
    "prepared": reply(second_parts, prepared=f.Prepared(second_moments=second)),
    "prepared_without": reply(prepared=f.Prepared()),
    "correlated": reply(correlated=f.Correlated()),
    "contribution": reply([chunk(0, [0.25, -0.25])],
                          contribution=f.Contribution(matrix=shape(2, 1), objective=0.75, iterations=12)),
    "validated": reply(validated=f.Validated(counts=[
        f.ValidationCounts(counts=f.RightCounts(right=250, wrong=50)), f.ValidationCounts()])),
    "finished": reply(finished=f.Finished(objective=0.5, evaluation=[evaluation, withheld])),
    "grown": reply([nodes], grown=f.Grown(trees=trees)),
    "judged": reply([chunk(0, [0.125, 0.5])], judged=f.Judged(
        errors=errors, evaluation=[evaluation], importance=shape(1, 2))),
    "progress": [o.Progress(run=run, phase="rounds", round=4, round_limit=100, objective=0.5, primal_residual=0.25,
                            sites_connected=2, sites=3, waiting_for=["west"], deadline_seconds=30, ending=failed)],
    "result": [o.ResultFrame(message=o.RunResult(
        run=run, job="name", seed=1, version="0.1.0", ending=o.Ending(converged=o.Converged()), objective=0.5,
        seconds=1.5, metric=shape(1, 2), rounds=1, sites=1, features=1, dropped=1, notes=1,
        selection=[o.SelectionRow(lambda_sparsity=0.01, rank=4, neighbours=5, right=250, wrong=50, chosen=True)],
        forest=o.CommonForest(trees=trees, class_weights=[1, 2]))),
        o.ResultFrame(part=chunk(0, [0.1, 0.2])), o.ResultFrame(part=nodes),
        o.ResultFrame(part=m.Part(rows=rows))],
}
for name, frames in golden.items():
    lines = [frame.SerializeToString(deterministic=True).hex() for frame in frames]
    (HERE / f"{name}.hex").write_text("\n".join(lines) + "\n")
(HERE / "versions.txt").write_text(
    f"python {sys.version.split()[0]}\n" + "".join(f"{p} {version(p)}\n" for p in ("grpcio-tools", "protobuf")))
