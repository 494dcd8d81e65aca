"""Names of functions and methods by what they do to their objects and arguments, for `side_effects`."""

from __future__ import annotations


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Methods that change their object, beside those with an underscore at the end.
CHANGING = _split_words(
    """append extend insert pop popitem remove clear update setdefault add discard sort reverse appendleft popleft put
    put_nowait get_nowait write writelines read readline readlines seek fill setflags __setitem__ __setattr__
    __delitem__ resize itemset partition byteswap setfield paste putpixel putdata putalpha putpalette alpha_composite
    thumbnail move_to_end extendleft rotate_ subtract intersection_update difference_update send throw __next__
    symmetric_difference_update load_state_dict train eval register_buffer register_parameter add_module execute
    executemany commit set reset"""
)
#: Functions that change their first argument.
CHANGING_FIRST = _split_words(
    """setattr delattr next copyto place put putmask heappush heappop heapreplace heapify insort insort_left
    insort_right shuffle put_along_axis fill_diagonal"""
)
#: Methods that put their arguments into a container, and those that return what is in one.
PUTTING = _split_words("append appendleft insert extend add update setdefault put __setitem__ __setattr__ get pop")
GETTING = _split_words("get pop popitem setdefault values items __getitem__ popleft")
#: What returns a new object.
NEW = _split_words(
    """copy clone deepcopy tolist item convert rotate crop filter astype tobytes numel dim size mean std sum min max
    argmin argmax any all norm len int float str bool repr abs round hash isinstance issubclass hasattr callable id ord
    chr format print join split strip lower upper startswith endswith keys encode decode randn rand randint zeros ones
    empty full arange linspace zeros_like ones_like empty_like full_like fromarray to_tensor pil_to_tensor to_image
    normalize adjust_brightness adjust_contrast affine pad stack cat concatenate where clip clamp exp log sqrt"""
)
#: What reads attributes whose names are not in the code.
READING_ALL = _split_words("vars attrgetter __dict__ dir asdict __getstate__ __reduce__")
#: Names of torch's functions and methods that draw.
DRAWING = _split_words(
    """rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson binomial
    sample random_ uniform_ normal_ bernoulli_ exponential_ geometric_ cauchy_ log_normal_ dropout"""
)


def ends_in_place(name: str) -> bool:
    """Whether a name is that of torch's methods that change their object."""
    return name.endswith("_") and not name.startswith("_")
