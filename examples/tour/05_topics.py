"""
Topics of a text corpus
=======================

Texts become sparse rows, one column for each word. They are clustered as they are: no
estimator of this library turns a sparse table into a dense one.

The corpus is made up: each text draws most of its words from one of five subjects and
the rest from a common vocabulary.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from sketchmeans import NystromKMeans
from sketchmeans.diagnostics import agreement

subjects = {
    "sea": "harbour sail anchor tide wave captain salt storm island net reef gull",
    "kitchen": "oven flour butter knife pepper broth dough spoon onion simmer plate",
    "garden": "soil seed spade tulip compost rain hedge blossom root rake pear bee",
    "music": "violin tempo choir chord flute rhythm concert drum melody score opera",
    "court": "judge appeal witness verdict lawyer clause contract jury claim oath",
}
common = "the a of and to in it was on with they had for not all then came"

rng = np.random.default_rng(0)
truth = rng.integers(len(subjects), size=6000)
own_words = [text.split() for text in subjects.values()]
texts = [
    " ".join([*rng.choice(own_words[i], 12), *rng.choice(common.split(), 30)])
    + " "
    + " ".join(rng.choice(own_words[rng.integers(len(subjects))], 4))
    for i in truth
]

# %%
# The cosine kernel compares directions, as is usual for texts.
vectorizer = TfidfVectorizer(sublinear_tf=True)
X = vectorizer.fit_transform(texts)
model = NystromKMeans(len(subjects), kernel="cosine", random_state=0).fit(X)
found = agreement(truth, model.labels_, len(subjects))
print(f"{X.shape[0]:,} texts of {X.shape[1]} words, {X.nnz:,} entries")
print(f"adjusted Rand index {found.adjusted_rand:.3f}")

# %%
# The words of each cluster whose mean weight is furthest above that of all texts.
words = vectorizer.get_feature_names_out()
mean = np.asarray(X.mean(axis=0)).ravel()
figure, axes = plt.subplots(1, 5, figsize=(10, 3.2))
for cluster, ax in enumerate(axes):
    lead = np.asarray(X[model.labels_ == cluster].mean(axis=0)).ravel() - mean
    top = lead.argsort()[-8:]
    ax.barh(words[top], lead[top], color=f"C{cluster}")
    ax.set(title=f"cluster {cluster}", xticks=[])
